-- when all is read
CREATE TABLE shop_1._orders_1_new (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20) NOT NULL);
ALTER TABLE shop_1._orders_1_new ADD COLUMN note VARCHAR(20);
CREATE TRIGGER shop_1.pt_osc_del AFTER DELETE ON shop_1.orders_1 FOR EACH ROW DELETE IGNORE FROM shop_1._orders_1_new WHERE id <=> OLD.id;
INSERT LOW_PRIORITY IGNORE INTO shop_1._orders_1_new (id, item) SELECT id, item FROM shop_1.orders_1;
DELETE FROM shop_1.orders_1 WHERE id = 2;
RENAME TABLE shop_1.orders_1 TO shop_1._orders_1_old, shop_1._orders_1_new TO shop_1.orders_1;
DROP TABLE IF EXISTS shop_1._orders_1_old;
DROP TRIGGER IF EXISTS shop_1.pt_osc_del;
INSERT INTO shop_1.orders_1 (item, note) VALUES ('cherry', 'red');
