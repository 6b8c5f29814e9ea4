-- when all is read
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
