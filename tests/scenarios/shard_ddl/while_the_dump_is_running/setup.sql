CREATE DATABASE shop_1;
CREATE TABLE shop_1.orders_1 (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20) NOT NULL, old INT NOT NULL, size VARCHAR(10));
CREATE TABLE shop_1.orders_2 LIKE shop_1.orders_1;
CREATE TABLE shop_1.orders_3 LIKE shop_1.orders_1;
INSERT INTO shop_1.orders_1 (item, old) VALUES ('apple', 1), ('pear', 2);
INSERT INTO shop_1.orders_2 (item, old) VALUES ('plum', 3);
INSERT INTO shop_1.orders_3 (item, old) VALUES ('lime', 4);
