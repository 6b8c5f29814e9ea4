-- when s1 has copied 1
ALTER TABLE shop_1.orders_1 DROP COLUMN old, ADD COLUMN note VARCHAR(20);
INSERT INTO shop_1.orders_1 (item, note) VALUES ('cherry', 'red');
