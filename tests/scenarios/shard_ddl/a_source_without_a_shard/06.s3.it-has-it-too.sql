ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
UPDATE shop_1.orders_1 SET note = 'c';
ALTER TABLE shop_1.orders_1 ADD COLUMN pieces INT;
