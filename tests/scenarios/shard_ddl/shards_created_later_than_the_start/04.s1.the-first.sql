INSERT INTO shop_1.orders_1 (item) VALUES ('apple');
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
