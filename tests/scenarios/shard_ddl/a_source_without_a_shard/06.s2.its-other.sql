ALTER TABLE shop_1.orders_2 ADD COLUMN pieces INT;
