-- The dump of s1 stands still in front of this table.
LOCK TABLES shop_1.orders_2 WRITE;
