ALTER TABLE shop_2.orders_1 ADD COLUMN note VARCHAR(20) AFTER id;
ALTER TABLE shop_2.orders_2 ADD COLUMN note VARCHAR(20) AFTER id;
INSERT INTO shop_2.orders_1 (item, note) VALUES ('mango', 'ripe');
UPDATE shop_2.orders_3 SET item = 'figs' WHERE id = 1;
ALTER TABLE shop_2.orders_3 ADD COLUMN note VARCHAR(20) AFTER id;
UPDATE shop_2.orders_3 SET note = 'dry' WHERE id = 1;
