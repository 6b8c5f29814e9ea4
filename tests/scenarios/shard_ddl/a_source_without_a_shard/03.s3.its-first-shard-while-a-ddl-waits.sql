-- when all is read
CREATE TABLE shop_1.orders_1 (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20) NOT NULL);
INSERT INTO shop_1.orders_1 (item) VALUES ('third');
