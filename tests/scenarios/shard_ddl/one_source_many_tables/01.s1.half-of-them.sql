-- when all is read
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20) AFTER id;
INSERT INTO shop_1.orders_1 (item, note) VALUES ('cherry', 'red');
UPDATE shop_1.orders_1 SET note = 'green' WHERE id = 1;
INSERT INTO shop_2.orders_3 (item) VALUES ('date');
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20) AFTER id;
DELETE FROM shop_1.orders_2 WHERE id = 1;
alter table shop_1.orders_3 add column `note` varchar(20) /* the same */ after id;
INSERT INTO shop_1.orders_3 (item, note) VALUES ('kiwi', 'brown');
INSERT INTO shop_2.orders_1 (item) VALUES ('lime');
