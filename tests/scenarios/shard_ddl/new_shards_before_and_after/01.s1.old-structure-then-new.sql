-- when all is read
CREATE TABLE shop_1.orders_3 LIKE shop_1.orders_1;
INSERT INTO shop_1.orders_3 (item) VALUES ('before all');
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
CREATE TABLE shop_1.orders_4 LIKE shop_1.orders_2;
INSERT INTO shop_1.orders_4 (item) VALUES ('old structure');
CREATE TABLE shop_1.orders_5 LIKE shop_1.orders_1;
INSERT INTO shop_1.orders_5 (item, note) VALUES ('new structure', 'a');
CREATE DATABASE shop_2;
CREATE TABLE shop_2.orders_5 (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20) NOT NULL, note VARCHAR(20));
INSERT INTO shop_2.orders_5 (item, note) VALUES ('new structure', 'b');
