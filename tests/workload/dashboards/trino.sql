-- Superset on Trino
SELECT date_trunc('week', CAST(created_at AS TIMESTAMP)) AS __timestamp, count(DISTINCT customer_id) AS "COUNT_DISTINCT(customer_id)"
FROM "hive"."sales"."orders"
WHERE created_at >= TIMESTAMP '2024-01-01 00:00:00.000000' AND created_at < TIMESTAMP '2024-03-01 00:00:00.000000' AND country IN ('SE', 'DK')
GROUP BY date_trunc('week', CAST(created_at AS TIMESTAMP))
ORDER BY "COUNT_DISTINCT(customer_id)" DESC
LIMIT 50000;

SELECT country, approx_distinct(customer_id), sum(total_amount) FILTER (WHERE is_gift) FROM orders WHERE order_date >= date '2024-02-01' GROUP BY country;
SELECT date_format(order_date, '%Y-%m') AS month, count(*) FROM orders WHERE status = 'paid' AND year(order_date) = 2024 GROUP BY 1;
SELECT u.word, count(*) FROM products CROSS JOIN UNNEST(split(title, ' ')) AS u (word) WHERE category = 'toys' GROUP BY u.word;
SELECT json_extract_scalar(properties, '$.campaign') AS c, count(*) FROM events WHERE event_type = 'click' AND regexp_like(page, '^/p') GROUP BY 1;
SELECT user_id, max_by(page, event_time) FROM events WHERE device = 'web' GROUP BY user_id;
SELECT count(*) FROM orders WHERE order_date >= date_add('day', -7, current_date) AND status = 'open';
SELECT count(*) FROM orders WHERE order_date >= date_add('day', -7, DATE '2024-02-01') AND status = 'open';
SELECT count(*) FROM events WHERE event_time >= current_timestamp - INTERVAL '1' HOUR;
SELECT count(*) FROM events WHERE event_time BETWEEN from_iso8601_timestamp('2024-01-01T00:00:00Z') AND from_iso8601_timestamp('2024-02-01T00:00:00Z');
WITH s AS (SELECT session_id, min(event_time) AS started, count(*) AS n FROM events WHERE event_type <> 'ping' GROUP BY session_id)
SELECT count(*) FROM s WHERE n > 3 AND session_id LIKE 's%';
SELECT country, channel, sum(total_amount) FROM orders WHERE store_id < 5 GROUP BY CUBE (country, channel);
SELECT * FROM (VALUES ('SE', 'north'), ('DE', 'centre')) AS r (country, region) JOIN orders o ON o.country = r.country WHERE r.region = 'north' AND o.status = 'paid';
SELECT o.order_id FROM orders o WHERE o.customer_id IN (SELECT customer_id FROM customers WHERE segment = 'enterprise' AND is_active) AND o.total_amount >= DECIMAL '100.00';
SELECT order_id FROM orders TABLESAMPLE BERNOULLI (10) WHERE status = 'paid';
SELECT order_id FROM "orders$snapshots" WHERE committed_at > TIMESTAMP '2024-01-01 00:00:00';
SELECT order_id FROM orders FOR TIMESTAMP AS OF TIMESTAMP '2024-01-01 00:00:00' WHERE status = 'paid';
SELECT element_at(split(notes, ','), 1) FROM orders WHERE cardinality(split(notes, ',')) > 1 AND country = 'NO';
SELECT if(total_amount > 100, 'big', 'small') AS size, count(*) FROM orders WHERE try_cast(notes AS integer) IS NULL AND status = 'paid' GROUP BY 1;
SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY customer_id ORDER BY created_at MEASURES A.status AS s ONE ROW PER MATCH PATTERN (A B+) DEFINE B AS B.total_amount > 10);
SELECT status, count(*) FROM orders WHERE country = ? AND channel = 'web' GROUP BY status;
EXPLAIN ANALYZE SELECT count(*) FROM orders WHERE status = 'paid';
SHOW CATALOGS;
SELECT o.order_id FROM orders o FULL OUTER JOIN order_items i ON o.order_id = i.order_id WHERE o.status = 'paid' AND i.quantity > 2;
SELECT transform(split(title, ' '), x -> upper(x)) FROM products WHERE brand = 'Acme'
