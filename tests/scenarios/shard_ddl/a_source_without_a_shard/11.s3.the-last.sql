ALTER TABLE shop_1.orders_1 DROP COLUMN note;
