ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20);
INSERT INTO shop_1.orders_1 (item, note) VALUES ('cherry', 'red');
