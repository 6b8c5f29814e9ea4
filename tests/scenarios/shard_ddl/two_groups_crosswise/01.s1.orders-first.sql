-- when all is read
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20);
ALTER TABLE shop_1.orders_2 ADD COLUMN note VARCHAR(20);
INSERT INTO shop_1.orders_1 (item, note) VALUES ('cherry', 'red');
ALTER TABLE shop_1.bills_1 ADD COLUMN due DATE;
INSERT INTO shop_1.bills_1 (amount, due) VALUES (3, '2024-02-29');
INSERT INTO shop_1.bills_2 (amount) VALUES (4);
ALTER TABLE shop_1.bills_2 ADD COLUMN due DATE;
