CREATE TABLE shop_1._orders_2_new (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20) NOT NULL);
ALTER TABLE shop_1._orders_2_new ADD COLUMN note VARCHAR(20);
INSERT LOW_PRIORITY IGNORE INTO shop_1._orders_2_new (id, item) SELECT id, item FROM shop_1.orders_2;
RENAME TABLE shop_1.orders_2 TO shop_1._orders_2_old, shop_1._orders_2_new TO shop_1.orders_2;
DROP TABLE IF EXISTS shop_1._orders_2_old;
UPDATE shop_1.orders_2 SET note = 'late';
