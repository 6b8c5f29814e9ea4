ALTER TABLE shop_1.orders_1 COMMENT = 'all of them';
ALTER TABLE shop_1.orders_2 COMMENT = 'all of them';
ALTER TABLE shop_1.orders_6 COMMENT = 'all of them';
