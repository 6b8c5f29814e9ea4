ALTER TABLE shop_1.bills_2 ADD COLUMN due DATE;
INSERT INTO shop_1.bills_2 (amount, due) VALUES (5, '2024-03-01');
ALTER TABLE shop_1.bills_1 ADD COLUMN due DATE;
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
INSERT INTO shop_1.orders_2 (item) VALUES ('kiwi');
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20);
UPDATE shop_1.orders_2 SET note = 'late';
