-- when s2 is in sync
ALTER TABLE shop_1.orders_1 ADD COLUMN note VARCHAR(20) DEFAULT 'none', ADD KEY by_item (item);
INSERT INTO shop_1.orders_1 (item, note, old) VALUES ('melon', 'round', 8);
