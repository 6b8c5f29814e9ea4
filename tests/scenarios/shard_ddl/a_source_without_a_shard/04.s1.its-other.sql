-- when all is read
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20);
