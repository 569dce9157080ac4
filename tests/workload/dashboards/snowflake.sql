-- Looker on Snowflake
SELECT
    (TO_CHAR(DATE_TRUNC('month', orders.created_at), 'YYYY-MM')) AS "orders.created_month",
    COUNT(DISTINCT orders.order_id) AS "orders.count",
    COALESCE(SUM(order_items.unit_price * order_items.quantity), 0) AS "order_items.revenue"
FROM orders
LEFT JOIN order_items ON orders.order_id = order_items.order_id
WHERE (orders.status) = 'paid' AND ((( orders.created_at ) >= (TO_TIMESTAMP('2024-01-01')) AND ( orders.created_at ) < (TO_TIMESTAMP('2024-07-01'))))
GROUP BY DATE_TRUNC('month', orders.created_at)
ORDER BY 1 DESC
FETCH NEXT 500 ROWS ONLY;

-- the latest row of each key, with QUALIFY
SELECT customer_id, order_id, status FROM orders WHERE country = 'SE' QUALIFY ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY created_at DESC) = 1;
SELECT * FROM orders QUALIFY RANK() OVER (PARTITION BY country ORDER BY total_amount DESC) <= 10;
SELECT o.country, SUM(o.total_amount) AS total FROM orders o WHERE o.order_date >= '2024-01-01'::DATE GROUP BY o.country QUALIFY SUM(total) OVER () > 0;

-- identifiers in the case of the catalog
SELECT "ORDERS"."STATUS", COUNT(1) FROM "ANALYTICS"."PUBLIC"."ORDERS" "ORDERS" WHERE "ORDERS"."CHANNEL" = 'web' GROUP BY 1;
SELECT $1, $2 FROM @my_stage/orders.csv (FILE_FORMAT => 'csv');
SELECT DATEADD(day, -7, order_date) AS w, IFF(is_gift, 'gift', 'own') AS kind, COUNT(*) FROM orders WHERE order_date BETWEEN '2024-01-01' AND '2024-03-31' GROUP BY ALL;
SELECT * EXCLUDE (notes) FROM orders WHERE status ILIKE 'paid' LIMIT 100;
SELECT * RENAME (order_id AS id) FROM orders WHERE store_id = 4;
SELECT country, COUNT_IF(status = 'paid') AS paid, ZEROIFNULL(SUM(total_amount)) FROM orders WHERE NVL(channel, 'none') = 'web' GROUP BY country;
SELECT f.value::STRING AS tag, COUNT(*) FROM products p, LATERAL FLATTEN(INPUT => SPLIT(p.title, ' ')) f WHERE p.category = 'toys' GROUP BY 1;
SELECT PARSE_JSON(properties):campaign::string AS campaign, COUNT(*) FROM events WHERE event_type = 'view' GROUP BY 1;
SELECT e.page, COUNT(*) FROM events e WHERE e.event_time >= DATEADD('day', -30, CURRENT_TIMESTAMP()) AND e.device = 'ios' GROUP BY e.page;
SELECT customer_id FROM customers WHERE name LIKE ANY ('A%', 'B%') AND country IN ('DE', 'AT', 'CH');
SELECT customer_id FROM customers WHERE CONTAINS(email, '@example') AND STARTSWITH(name, 'M');
WITH daily AS (
  SELECT order_date, SUM(total_amount) AS revenue FROM orders WHERE status != 'cancelled' GROUP BY order_date
)
SELECT order_date, revenue, AVG(revenue) OVER (ORDER BY order_date ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS moving
FROM daily WHERE order_date >= TO_DATE('2024-02-01') ORDER BY order_date;
SELECT country, channel, SUM(total_amount) FROM orders SAMPLE (10) WHERE status = 'paid' GROUP BY 1, 2;
SELECT * FROM orders AT (TIMESTAMP => '2024-05-01 00:00:00'::timestamp) WHERE status = 'paid';
SELECT * FROM (SELECT country, channel, total_amount FROM orders WHERE order_date > '2024-01-31') PIVOT (SUM(total_amount) FOR channel IN ('web', 'store')) AS p;
SELECT listagg(DISTINCT brand, ', ') WITHIN GROUP (ORDER BY brand) FROM products WHERE category = 'garden' AND price BETWEEN 5 AND 50;
SELECT a.country FROM orders a WHERE a.total_amount > (SELECT AVG(b.total_amount) FROM orders b WHERE b.country = a.country) AND a.status = 'paid';
SELECT o.order_id FROM orders o ASOF JOIN events e MATCH_CONDITION (o.created_at >= e.event_time) ON o.customer_id = e.user_id WHERE o.status = 'paid';
USE WAREHOUSE reporting;
ALTER SESSION SET QUERY_TAG = 'dashboard 14';
CREATE OR REPLACE TEMPORARY TABLE top_customers AS SELECT customer_id, SUM(total_amount) AS s FROM orders WHERE order_date >= '2024-01-01' GROUP BY 1;
SELECT COUNT(*) FROM orders WHERE status = %(status)s;
SELECT COUNT(*) FROM orders WHERE created_at >= '{{ ds }}'::timestamp AND country = '{{ params.country }}';
SELECT COUNT(*) FROM orders WHERE country = {{ params.country }}
