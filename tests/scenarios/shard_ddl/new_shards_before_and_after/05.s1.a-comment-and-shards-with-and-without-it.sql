-- when in step
ALTER TABLE shop_1.orders_1 COMMENT = 'all of them';
CREATE TABLE shop_1.orders_7 LIKE shop_1.orders_2;
CREATE TABLE shop_1.orders_8 LIKE shop_1.orders_1;
INSERT INTO shop_1.orders_7 (item, note) VALUES ('has to have it', 'e');
INSERT INTO shop_1.orders_8 (item, note) VALUES ('has it', 'f');
ALTER TABLE shop_1.orders_7 COMMENT = 'all of them';
ALTER TABLE shop_1.orders_2 COMMENT = 'all of them';
ALTER TABLE shop_1.orders_3 COMMENT = 'all of them';
ALTER TABLE shop_1.orders_4 COMMENT = 'all of them';
ALTER TABLE shop_1.orders_5 COMMENT = 'all of them';
ALTER TABLE shop_2.orders_5 COMMENT = 'all of them';
ALTER TABLE shop_1.orders_6 COMMENT = 'all of them';
