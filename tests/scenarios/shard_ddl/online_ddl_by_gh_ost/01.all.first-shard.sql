-- when all is read
CREATE TABLE shop_1._orders_1_ghc (id BIGINT AUTO_INCREMENT, hint VARCHAR(64), value VARCHAR(99), PRIMARY KEY (id));
CREATE TABLE shop_1._orders_1_gho LIKE shop_1.orders_1;
ALTER TABLE shop_1._orders_1_gho ADD COLUMN note VARCHAR(20);
ALTER /* gh-ost */ TABLE shop_1._orders_1_gho AUTO_INCREMENT=300;
INSERT INTO shop_1.orders_1 (item) VALUES ('meanwhile');
INSERT INTO shop_1._orders_1_gho (id, item) SELECT id, item FROM shop_1.orders_1;
CREATE TABLE shop_1._orders_1_del (id INT AUTO_INCREMENT PRIMARY KEY) COMMENT='ghost-cut-over-sentry';
DROP TABLE shop_1._orders_1_del;
RENAME TABLE shop_1.orders_1 TO shop_1._orders_1_del, shop_1._orders_1_gho TO shop_1.orders_1;
DROP TABLE shop_1._orders_1_ghc;
DROP TABLE shop_1._orders_1_del;
INSERT INTO shop_1.orders_1 (item, note) VALUES ('cherry', 'red');
INSERT INTO shop_1.orders_2 (item) VALUES ('lime');
