CREATE TABLE shop_1.basket_1 (id INT PRIMARY KEY, pieces INT);
