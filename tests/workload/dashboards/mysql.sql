-- Metabase on MySQL
SELECT `orders`.`status` AS `status`, count(*) AS `count` FROM `orders`
WHERE (`orders`.`created_at` >= convert_tz('2024-01-01 00:00:00.000', 'UTC', @@session.time_zone) AND `orders`.`country` = 'SE')
GROUP BY `orders`.`status` ORDER BY `orders`.`status` ASC;
SELECT date(`orders`.`created_at`) AS `day`, sum(`orders`.`total_amount`) AS `sum` FROM `orders` WHERE date(`orders`.`created_at`) BETWEEN '2024-01-01' AND '2024-01-31' AND `orders`.`channel` <> 'store' GROUP BY date(`orders`.`created_at`);
SELECT STR_TO_DATE(CONCAT(DATE_FORMAT(order_date, '%Y-%m'), '-01'), '%Y-%m-%d') AS month, COUNT(*) FROM orders WHERE status = 'paid' GROUP BY 1;
SELECT IFNULL(segment, 'none') AS s, COUNT(*) FROM customers WHERE is_active = 1 AND signup_date >= '2024-01-01' GROUP BY s WITH ROLLUP;
SELECT GROUP_CONCAT(DISTINCT brand ORDER BY brand SEPARATOR ', ') FROM products WHERE category = 'toys';
SELECT * FROM orders WHERE order_date >= DATE_SUB('2024-02-01', INTERVAL 7 DAY) AND status = 'paid' LIMIT 0, 100;
SELECT COUNT(*) FROM orders WHERE created_at >= NOW() - INTERVAL 30 DAY AND country = 'NO';
SELECT COUNT(*) FROM orders WHERE order_date > "2024-01-15" AND status = "paid";
SELECT COUNT(*) FROM orders WHERE status <=> NULL OR channel <=> 'web';
SELECT COUNT(*) FROM orders WHERE YEAR(order_date) = 2024 AND MONTH(order_date) = 2;
SELECT c.name, COUNT(o.order_id) FROM customers c STRAIGHT_JOIN orders o ON o.customer_id = c.customer_id WHERE c.country = 'DE' GROUP BY c.name;
SELECT name FROM customers WHERE name REGEXP '^A' AND email LIKE '%@example.com';
SELECT name FROM customers WHERE is_active AND NOT (country = 'SE' AND segment = 'consumer');
SELECT properties->>'$.campaign' AS c, COUNT(*) FROM events WHERE event_type = 'click' GROUP BY c;
SELECT IF(total_amount > 100, 'big', 'small') AS size, COUNT(*) FROM orders FORCE INDEX (ix_date) WHERE order_date >= '2024-02-01' GROUP BY size;
SELECT @rank := @rank + 1 AS r, country FROM orders, (SELECT @rank := 0) x WHERE status = 'paid';
SELECT p.category, SUM(i.quantity) FROM products p, order_items i WHERE p.product_id = i.product_id AND i.returned = 0 AND p.brand IN ('Acme', 'Umbra') GROUP BY p.category HAVING SUM(i.quantity) > 0;
SELECT SQL_CALC_FOUND_ROWS order_id FROM orders WHERE store_id = 3 LIMIT 10;
SELECT order_id FROM orders WHERE status = 'paid' FOR UPDATE;
SELECT a.order_id FROM orders a LEFT JOIN orders b ON a.customer_id = b.customer_id AND a.created_at < b.created_at WHERE b.order_id IS NULL AND a.status = 'paid';
SELECT COUNT(*) FROM orders WHERE total_amount DIV 10 = 3 AND country = 'SE';
SET NAMES utf8mb4;
SHOW VARIABLES LIKE 'sql_mode';
/* ApplicationName=DBeaver 24 */ SELECT @@session.transaction_isolation;
SELECT COUNT(*) FROM orders WHERE country = 'S' 'E';
SELECT DATE_FORMAT(e.event_time, '%H') AS hour, COUNT(*) FROM events e WHERE e.event_time >= '2024-01-01 00:00:00' AND e.event_time < '2024-02-01' AND e.device IN ('ios', 'android') GROUP BY 1 ORDER BY 1
