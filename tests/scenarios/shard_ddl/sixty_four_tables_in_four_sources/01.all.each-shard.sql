-- when all is read
BEGIN NOT ATOMIC FOR i IN 1..63 DO EXECUTE IMMEDIATE CONCAT('ALTER TABLE shop_1.orders_', i, ' ADD COLUMN note VARCHAR(20)'); END FOR; END;
BEGIN NOT ATOMIC FOR i IN 1..63 DO EXECUTE IMMEDIATE CONCAT('INSERT INTO shop_1.orders_', i, ' (item, note) VALUES (''fig'', ', i, ')'); END FOR; END;
UPDATE shop_1.orders_1 SET note = 'early' WHERE id = 1;
INSERT INTO shop_1.orders_64 (item) VALUES ('before');
ALTER TABLE shop_1.orders_64 ADD COLUMN note VARCHAR(20);
UPDATE shop_1.orders_64 SET note = 'behind';
