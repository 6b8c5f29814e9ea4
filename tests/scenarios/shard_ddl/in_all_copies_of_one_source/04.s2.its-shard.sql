-- when s2 is in sync
INSERT INTO shop_1.orders_1 (item, old) VALUES ('fig', 4);
ALTER TABLE shop_1.orders_1 DROP COLUMN old, ADD COLUMN note VARCHAR(20);
UPDATE shop_1.orders_1 SET note = 'new' WHERE item = 'pear';
