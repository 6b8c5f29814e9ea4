-- The load stands still: nobody may write this table.
CREATE DATABASE shop_all;
CREATE TABLE shop_all.orders (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20) NOT NULL);
LOCK TABLES shop_all.orders READ;
