-- when in step
CREATE TABLE shop_1.orders_7 (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20) NOT NULL, note VARCHAR(20), pieces INT);
INSERT INTO shop_1.orders_7 (item, note, pieces) VALUES ('fourth', 'd', 4);
