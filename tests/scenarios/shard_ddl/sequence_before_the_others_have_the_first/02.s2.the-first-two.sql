-- when all is read
INSERT INTO shop_1.orders_2 (item) VALUES ('old');
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20);
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
UPDATE shop_1.orders_1 SET note = 'x' WHERE id = 1;
ALTER TABLE shop_1.orders_1 ADD COLUMN pieces INT NOT NULL DEFAULT 1;
UPDATE shop_1.orders_1 SET pieces = 5 WHERE id = 1;
