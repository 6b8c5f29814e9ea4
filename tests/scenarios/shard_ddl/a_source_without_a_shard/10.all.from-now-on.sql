-- when all is read
CREATE TABLE shop_1.orders_8 (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20) NOT NULL, note VARCHAR(20), pieces INT);
ALTER TABLE shop_1.orders_8 DROP COLUMN note;
