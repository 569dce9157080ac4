-- Looker Studio
SELECT clmn0_, SUM(clmn1_) AS clmn100000_ FROM (
  SELECT t0.country AS clmn0_, t0.total_amount AS clmn1_, t0.order_date AS clmn2_ FROM `shop.sales.orders` AS t0
) WHERE (clmn2_ >= DATE '2024-01-01' AND clmn2_ <= DATE '2024-01-28') GROUP BY clmn0_ LIMIT 2000000;

SELECT DATE_TRUNC(order_date, MONTH) AS month, COUNT(*) AS n FROM `orders` WHERE status = 'paid' AND order_date >= '2024-01-01' GROUP BY 1;
SELECT FORMAT_DATE('%Y-%m', order_date) AS month, COUNTIF(is_gift) AS gifts FROM orders WHERE order_date BETWEEN DATE(2024, 1, 1) AND DATE(2024, 3, 31) GROUP BY month;
SELECT country, APPROX_COUNT_DISTINCT(customer_id) FROM orders WHERE channel IN UNNEST(['web', 'app']) GROUP BY country;
SELECT * EXCEPT (notes) REPLACE (UPPER(country) AS country) FROM orders WHERE store_id IN (1, 2, 3);
SELECT event_type, COUNT(*) FROM events WHERE TIMESTAMP_TRUNC(event_time, DAY) = TIMESTAMP '2024-02-01' GROUP BY event_type;
SELECT event_type, COUNT(*) FROM events WHERE DATE(event_time) >= DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY) AND device = 'android' GROUP BY event_type;
SELECT JSON_VALUE(properties, '$.campaign') AS campaign, COUNT(*) FROM events WHERE event_type = 'click' GROUP BY 1 HAVING COUNT(*) > 1;
SELECT user_id, ARRAY_AGG(page ORDER BY event_time LIMIT 3) AS pages FROM events WHERE session_id = 's1' GROUP BY user_id;
SELECT p.brand, SAFE_DIVIDE(SUM(i.quantity * i.unit_price), SUM(i.quantity)) AS price FROM products p JOIN order_items i USING (product_id) WHERE p.category = 'toys' AND NOT i.returned GROUP BY p.brand;
SELECT country, RANK() OVER (ORDER BY SUM(total_amount) DESC) AS r FROM orders WHERE status = 'paid' GROUP BY country QUALIFY r <= 5;
WITH t AS (SELECT customer_id, STRUCT(name, city) AS who FROM customers WHERE segment = 'consumer') SELECT who.name FROM t WHERE who.city = 'Oslo';
SELECT word, COUNT(*) FROM products, UNNEST(SPLIT(title, ' ')) AS word WHERE category = 'books' GROUP BY word;
SELECT IF(total_amount > 100, 'big', 'small') AS size, COUNT(*) FROM orders WHERE COALESCE(discount, 0) = 0 AND country = 'SE' GROUP BY size;
SELECT SUM(total_amount) FROM orders WHERE EXTRACT(YEAR FROM order_date) = 2024 AND EXTRACT(MONTH FROM order_date) IN (1, 2);
SELECT SUM(total_amount) FROM orders WHERE _PARTITIONTIME >= TIMESTAMP '2024-01-01';
SELECT SUM(total_amount) FROM orders WHERE order_date >= @start AND order_date < @end AND status = 'paid';
SELECT COUNT(*) FROM `shop.sales.events_*` WHERE _TABLE_SUFFIX BETWEEN '20240101' AND '20240131';
DECLARE x INT64 DEFAULT 1;
SELECT customer_id FROM customers WHERE REGEXP_CONTAINS(email, r'@example\.(com|org)$') AND is_active;
SELECT customer_id FROM customers WHERE signup_date >= PARSE_DATE('%Y%m%d', '20240101') AND country = 'FR';
SELECT o.order_id FROM orders AS o, customers AS c WHERE o.customer_id = c.customer_id AND c.segment = 'enterprise' AND o.total_amount > 250.5;
SELECT * FROM orders FOR SYSTEM_TIME AS OF TIMESTAMP '2024-05-01' WHERE status = 'paid';
SELECT order_id, LEAD(status) OVER w AS next FROM orders WHERE customer_id = 7 WINDOW w AS (PARTITION BY customer_id ORDER BY created_at);
SELECT a.* FROM (SELECT AS STRUCT country, COUNT(*) AS n FROM orders WHERE is_gift GROUP BY country) a;
SELECT COUNT(*) FROM orders WHERE order_date > DATE '2024-01-01' |> WHERE status = 'paid'
