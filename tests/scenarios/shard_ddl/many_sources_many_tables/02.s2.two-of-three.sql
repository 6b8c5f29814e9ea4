ALTER TABLE shop_1.orders_3 ADD COLUMN note VARCHAR(20);
INSERT INTO shop_1.orders_1 (item) VALUES ('fig');
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
INSERT INTO shop_1.orders_1 (item, note) VALUES ('kiwi', 'brown');
INSERT INTO shop_1.orders_2 (item) VALUES ('date');
