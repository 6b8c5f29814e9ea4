DELETE FROM shop_1.orders_1 WHERE id = 2;
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20);
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
INSERT INTO shop_1.orders_3 (item) VALUES ('lime');
ALTER TABLE shop_1.orders_3 ADD COLUMN note VARCHAR(20);
UPDATE shop_1.orders_1 SET note = 'late';
