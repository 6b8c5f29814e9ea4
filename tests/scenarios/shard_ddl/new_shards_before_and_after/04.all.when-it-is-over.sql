-- when in step
CREATE TABLE shop_1.orders_6 LIKE shop_1.orders_1;
INSERT INTO shop_1.orders_6 (item, note) VALUES ('after', 'd');
