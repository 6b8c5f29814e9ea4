-- when all is read
CREATE TABLE shop_1.orders_2 (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20) NOT NULL);
CREATE TABLE shop_1.orders_4 LIKE shop_1.orders_2;
INSERT INTO shop_1.orders_2 (item) VALUES ('plum');
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20);
INSERT INTO shop_1.orders_2 (item, note) VALUES ('cherry', 'red');
CREATE TABLE shop_1.orders_3 LIKE shop_1.orders_2;
INSERT INTO shop_1.orders_3 (item, note) VALUES ('fig', 'blue');
INSERT INTO shop_1.orders_4 (item) VALUES ('pear');
