-- when all is read
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
INSERT INTO shop_1.orders_1 (item, note) VALUES ('cherry', 'red');
CREATE DATABASE shop_gone_1;
CREATE TABLE shop_gone_1.orders_1 LIKE shop_1.orders_1;
INSERT INTO shop_gone_1.orders_1 SELECT * FROM shop_1.orders_1;
TRUNCATE TABLE shop_1.orders_1;
INSERT INTO shop_1.orders_1 (id, item) VALUES (1000, 'new');
CREATE TABLE shop_gone_1.orders_2 LIKE shop_1.orders_2;
INSERT INTO shop_gone_1.orders_2 SELECT * FROM shop_1.orders_2;
DROP TABLE shop_1.orders_2;
