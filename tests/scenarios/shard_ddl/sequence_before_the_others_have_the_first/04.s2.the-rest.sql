ALTER TABLE shop_1.orders_2 ADD COLUMN pieces INT NOT NULL DEFAULT 1;
ALTER TABLE shop_1.orders_2 DROP COLUMN note, ADD KEY (item);
INSERT INTO shop_1.orders_2 (item, pieces) VALUES ('new', 7);
ALTER TABLE shop_1.orders_1 DROP COLUMN note, ADD KEY (item);
