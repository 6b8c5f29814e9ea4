ALTER TABLE `shop_all`.`orders` ADD COLUMN note VARCHAR(20) AFTER id;
