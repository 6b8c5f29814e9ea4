ALTER TABLE shop_1.orders_2 ADD COLUMN pieces INT;
ALTER TABLE shop_1.orders_1 ADD COLUMN pieces INT;
