CREATE DATABASE shop_1;
CREATE TABLE shop_1.stock (id INT PRIMARY KEY, pieces INT);
INSERT INTO shop_1.stock VALUES (2, 2);
