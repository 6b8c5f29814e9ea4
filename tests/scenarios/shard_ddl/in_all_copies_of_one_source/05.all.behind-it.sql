INSERT INTO shop_1.orders_1 (item, note) VALUES ('lime', 'green');
UPDATE shop_1.orders_1 SET note = 'all' WHERE item = 'apple';
