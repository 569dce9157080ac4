-- QuickSight
/* QuickSight 2c1f */
SELECT date_trunc('month', "order_date") AS "m", SUM("total_amount") AS "s" FROM "public"."orders" WHERE "status" = 'paid' AND date_trunc('month', "order_date") >= '2024-01-01' GROUP BY date_trunc('month', "order_date") ORDER BY 1 LIMIT 2500;
-- Looker
SELECT DATE(orders.created_at) AS "orders.created_date", COUNT(*) AS "orders.count" FROM public.orders AS orders
WHERE ((( orders.created_at ) >= ((DATEADD(day,-29, DATE_TRUNC('day',GETDATE()) ))) AND ( orders.created_at ) < ((DATEADD(day,30, DATEADD(day,-29, DATE_TRUNC('day',GETDATE()) ) ))))) AND (orders.country = 'SE')
GROUP BY 1 ORDER BY 1 DESC LIMIT 500;
SELECT country, NVL(SUM(total_amount), 0) FROM orders WHERE order_date >= '2024-01-01' AND order_date < DATEADD(month, 2, '2024-01-01'::date) GROUP BY country;
SELECT country, LISTAGG(DISTINCT channel, ',') WITHIN GROUP (ORDER BY channel) FROM orders WHERE store_id BETWEEN 1 AND 4 GROUP BY country;
SELECT country, MEDIAN(total_amount) FROM orders WHERE status NOT IN ('cancelled', 'open') GROUP BY country;
SELECT DATEDIFF(day, signup_date, '2024-06-01') AS age, COUNT(*) FROM customers WHERE is_active GROUP BY 1;
SELECT order_id FROM orders WHERE notes SIMILAR TO '%(refund|return)%' AND status = 'paid';
SELECT order_id FROM orders WHERE CONVERT(int, total_amount) = 10 AND channel = 'web';
SELECT json_extract_path_text(properties, 'campaign') AS c, COUNT(*) FROM events WHERE event_type = 'click' GROUP BY 1;
SELECT DISTINCT user_id FROM events WHERE event_time > SYSDATE - 7 AND device = 'web';
SELECT TOP 10 customer_id FROM orders WHERE status = 'paid' ORDER BY total_amount DESC;
WITH RECURSIVE chain (customer_id, referrer_id, depth) AS (
  SELECT customer_id, referrer_id, 1 FROM customers WHERE referrer_id IS NULL AND country = 'SE'
  UNION ALL SELECT c.customer_id, c.referrer_id, h.depth + 1 FROM customers c JOIN chain h ON c.referrer_id = h.customer_id WHERE h.depth < 5
) SELECT depth, COUNT(*) FROM chain GROUP BY depth;
SELECT * FROM orders WHERE (country, channel) IN (('SE', 'web'), ('NO', 'store')) AND order_date >= '2024-01-01';
SELECT CASE WHEN o.total_amount < 50 THEN 'a' WHEN o.total_amount < 100 THEN 'b' ELSE 'c' END AS bucket, COUNT(*) FROM orders o JOIN order_items i ON i.order_id = o.order_id WHERE i.quantity >= 2 AND o.status = 'shipped' GROUP BY 1;
UNLOAD ('SELECT * FROM orders') TO 's3://bucket/x' IAM_ROLE 'arn:aws:iam::1:role/x' PARQUET;
COPY orders FROM 's3://bucket/x' IAM_ROLE 'arn:aws:iam::1:role/x';
ANALYZE orders;
SELECT ratio_to_report(SUM(total_amount)) OVER () FROM orders WHERE country = 'SE' GROUP BY channel;
SELECT o.country FROM orders o WHERE o.order_date = (SELECT MAX(order_date) FROM orders WHERE status = 'paid');
SELECT APPROXIMATE COUNT(DISTINCT customer_id) FROM orders WHERE status = 'paid' AND order_date > '2024-01-10'
