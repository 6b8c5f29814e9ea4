CREATE DATABASE shop_1;
CREATE TABLE shop_1.orders_1 (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20) NOT NULL, old INT NOT NULL);
INSERT INTO shop_1.orders_1 (item, old) VALUES ('apple', 1), ('pear', 2);
-- The dumps stand still in front of this table.
LOCK TABLES shop_1.orders_1 WRITE;
