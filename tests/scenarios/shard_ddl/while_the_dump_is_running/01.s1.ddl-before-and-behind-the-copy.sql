-- when s1 has copied 2
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20) DEFAULT 'none', ADD KEY by_item (item);
INSERT INTO shop_1.orders_2 (item, note, old) VALUES ('cherry', 'red', 5);
ALTER TABLE shop_1.orders_2 DROP COLUMN old;
ALTER TABLE shop_1.orders_2 MODIFY COLUMN size VARCHAR(40);
UPDATE shop_1.orders_2 SET size = 'rather large, this one' WHERE item = 'plum';
INSERT INTO shop_1.orders_2 (item, note, size) VALUES ('fig', 'blue', 'a size that is longer than it was');
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20) DEFAULT 'none', ADD KEY by_item (item);
INSERT INTO shop_1.orders_1 (item, note, old) VALUES ('cherry', 'red', 6);
