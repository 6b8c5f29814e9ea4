-- when s1 has copied 1
ALTER TABLE shop_1.orders_2 RENAME COLUMN item TO thing;
UNLOCK TABLES;
