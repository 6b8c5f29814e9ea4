-- when all is read
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
INSERT INTO shop_1.orders_1 (item, note) VALUES ('cherry', 'red');
RENAME TABLE shop_1.orders_1 TO shop_1.orders_7, shop_1.orders_2 TO shop_1.orders_8;
INSERT INTO shop_1.orders_7 (item, note) VALUES ('kiwi', 'brown');
INSERT INTO shop_1.orders_8 (item) VALUES ('lime');
ALTER TABLE shop_1.orders_8 RENAME TO shop_1.orders_9;
ALTER TABLE shop_1.orders_9 ADD COLUMN note VARCHAR(20);
UPDATE shop_1.orders_9 SET note = 'c';
