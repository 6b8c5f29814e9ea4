ALTER TABLE orders ADD COLUMN note VARCHAR(20);
ALTER TABLE orders COMMENT = 'all of them';
