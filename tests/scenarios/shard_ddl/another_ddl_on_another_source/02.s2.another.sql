-- when all is read
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(30);
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(30);
INSERT INTO shop_1.orders_2 (item, note) VALUES ('kiwi', 'brown');
