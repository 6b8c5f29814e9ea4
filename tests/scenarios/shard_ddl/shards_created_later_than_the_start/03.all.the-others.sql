ALTER TABLE shop_1.orders_4 ADD COLUMN note VARCHAR(20);
UPDATE shop_1.orders_4 SET note = 'late';
