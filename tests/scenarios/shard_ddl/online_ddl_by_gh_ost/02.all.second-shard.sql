-- when all is read
CREATE TABLE shop_1._orders_2_gho LIKE shop_1.orders_2;
ALTER TABLE shop_1._orders_2_gho ADD COLUMN note VARCHAR(20);
ALTER /* gh-ost */ TABLE shop_1._orders_2_gho AUTO_INCREMENT=200;
INSERT INTO shop_1._orders_2_gho (id, item) SELECT id, item FROM shop_1.orders_2;
RENAME TABLE shop_1.orders_2 TO shop_1._orders_2_del, shop_1._orders_2_gho TO shop_1.orders_2;
DROP TABLE shop_1._orders_2_del;
UPDATE shop_1.orders_2 SET note = 'late';
