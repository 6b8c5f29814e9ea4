-- when in step
CREATE TABLE shop_1.orders_1 (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20) NOT NULL, note VARCHAR(20));
INSERT INTO shop_1.orders_1 (item, note) VALUES ('third', 'c');
