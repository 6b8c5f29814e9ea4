ALTER TABLE shop_1.orders_1 ADD COLUMN pieces INT;
UPDATE shop_1.orders_1 SET pieces = 3;
ALTER TABLE shop_1.orders_2 ADD COLUMN pieces INT;
