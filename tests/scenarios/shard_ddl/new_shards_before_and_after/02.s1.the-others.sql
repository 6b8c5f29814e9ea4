-- when all is read
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20);
ALTER TABLE shop_1.orders_3 ADD COLUMN note VARCHAR(20);
ALTER TABLE shop_1.orders_4 ADD COLUMN note VARCHAR(20);
UPDATE shop_1.orders_4 SET note = 'c';
