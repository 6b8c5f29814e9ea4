INSERT INTO shop_1.orders_2 (item) VALUES ('lime');
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20);
UPDATE shop_1.orders_2 SET note = 'late';
