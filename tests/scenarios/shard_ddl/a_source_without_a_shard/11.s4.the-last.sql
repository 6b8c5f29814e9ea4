ALTER TABLE shop_1.orders_7 DROP COLUMN note;
