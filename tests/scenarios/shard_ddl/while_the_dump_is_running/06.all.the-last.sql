ALTER TABLE shop_1.orders_1 DROP COLUMN old;
ALTER TABLE shop_1.orders_1 MODIFY COLUMN size VARCHAR(40);
UPDATE shop_1.orders_1 SET size = 'as long as it may well be now' WHERE item = 'pear';
