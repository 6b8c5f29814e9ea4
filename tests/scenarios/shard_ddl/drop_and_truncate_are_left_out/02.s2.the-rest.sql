CREATE DATABASE shop_gone_1;
CREATE TABLE shop_gone_1.orders_2 LIKE shop_1.orders_2;
INSERT INTO shop_gone_1.orders_2 SELECT * FROM shop_1.orders_2;
TRUNCATE TABLE shop_1.orders_2;
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20);
UPDATE shop_1.orders_1 SET note = 'b' WHERE id = 1;
