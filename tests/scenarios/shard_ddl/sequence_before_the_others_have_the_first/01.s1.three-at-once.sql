-- when all is read
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
INSERT INTO shop_1.orders_1 (item, note) VALUES ('one', 'a');
ALTER TABLE shop_1.orders_1 ADD COLUMN pieces INT NOT NULL DEFAULT 1;
INSERT INTO shop_1.orders_1 (item, note, pieces) VALUES ('two', 'b', 2);
ALTER TABLE shop_1.orders_1 DROP COLUMN note, ADD KEY (item);
INSERT INTO shop_1.orders_1 (item, pieces) VALUES ('three', 3);
UPDATE shop_1.orders_1 SET pieces = pieces + 10 WHERE id < 4;
