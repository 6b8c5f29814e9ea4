CREATE DATABASE shop_1;
CREATE TABLE shop_1.orders_1 (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20) NOT NULL);
CREATE TABLE shop_1.orders_2 LIKE shop_1.orders_1;
CREATE TABLE shop_1.older_3 LIKE shop_1.orders_1;
INSERT INTO shop_1.orders_1 (item) VALUES ('apple'), ('pear');
INSERT INTO shop_1.orders_2 (item) VALUES ('plum');
