ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20);
INSERT INTO shop_1.orders_2 (item, note) VALUES ('kiwi', 'between');
ALTER TABLE shop_1.orders_2 ADD COLUMN pieces INT NOT NULL DEFAULT 1;
INSERT INTO shop_1.orders_2 (item, note, pieces) VALUES ('lime', 'between', 4);
ALTER TABLE shop_1.orders_2 DROP COLUMN note, ADD KEY (item);
DELETE FROM shop_1.orders_2 WHERE id = 1;
