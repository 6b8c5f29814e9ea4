-- when s1 is in sync
INSERT INTO shop_1.orders_3 (item, old) VALUES ('lemon', 7);
ALTER TABLE shop_1.orders_3 ADD COLUMN note VARCHAR(20) DEFAULT 'none', ADD KEY by_item (item);
ALTER TABLE shop_1.orders_3 DROP COLUMN old;
ALTER TABLE shop_1.orders_3 MODIFY COLUMN size VARCHAR(40);
UPDATE shop_1.orders_3 SET note = 'late', size = 'as long as it may well be now' WHERE item = 'lime';
UPDATE shop_1.orders_2 SET item = 'prune' WHERE item = 'plum';
