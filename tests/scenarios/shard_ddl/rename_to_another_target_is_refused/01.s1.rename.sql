-- when all is read
RENAME TABLE shop_1.orders_2 TO shop_1.bills_2;
