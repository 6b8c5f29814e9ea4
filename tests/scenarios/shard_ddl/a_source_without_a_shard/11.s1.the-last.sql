ALTER TABLE shop_1.orders_1 DROP COLUMN note;
ALTER TABLE shop_1.orders_2 DROP COLUMN note;
