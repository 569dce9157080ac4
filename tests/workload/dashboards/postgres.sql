-- Superset, time series over a table
SELECT DATE_TRUNC('day', created_at) AS __timestamp, SUM(total_amount) AS "SUM(total_amount)"
FROM public.orders
WHERE created_at >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND created_at < TO_TIMESTAMP('2024-04-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND status IN ('paid', 'shipped')
GROUP BY DATE_TRUNC('day', created_at)
ORDER BY "SUM(total_amount)" DESC
LIMIT 10000;

-- Superset, virtual dataset
SELECT channel AS channel, COUNT(*) AS count, AVG(total_amount) AS "AVG(total_amount)"
FROM (SELECT o.*, c.segment FROM orders o JOIN customers c ON c.customer_id = o.customer_id WHERE c.is_active) AS virtual_table
WHERE order_date >= TO_DATE('2024-02-01', 'YYYY-MM-DD') AND segment = 'enterprise'
GROUP BY channel
ORDER BY count DESC
LIMIT 100;

-- Metabase:: userID: 12 queryType: MBQL queryHash: 5f2c9a
SELECT "public"."orders"."status" AS "status", COUNT(*) AS "count"
FROM "public"."orders"
WHERE "public"."orders"."order_date" BETWEEN date '2024-01-01' AND date '2024-03-31'
  AND ("public"."orders"."country" = 'SE' OR "public"."orders"."country" = 'NO')
GROUP BY "public"."orders"."status"
ORDER BY "public"."orders"."status" ASC;

-- Metabase:: userID: 12 queryType: MBQL queryHash: 77aa01
SELECT "source"."segment" AS "segment", SUM("source"."total_amount") AS "sum"
FROM (
  SELECT "public"."orders"."total_amount" AS "total_amount", "Customers"."segment" AS "segment",
         "public"."orders"."is_gift" AS "is_gift"
  FROM "public"."orders"
  LEFT JOIN "public"."customers" AS "Customers" ON "public"."orders"."customer_id" = "Customers"."customer_id"
) AS "source"
WHERE "source"."is_gift" = TRUE AND "source"."segment" IS NOT NULL
GROUP BY "source"."segment";

-- Metabase native question, a parameter that was never filled in
SELECT count(*) FROM orders WHERE status = {{status}} [[AND country = {{country}}]];

-- Tableau
SELECT "orders"."channel" AS "channel", SUM("orders"."total_amount") AS "sum:total_amount:ok"
FROM "public"."orders" "orders"
  INNER JOIN (
    SELECT "orders"."country" AS "country", SUM("orders"."total_amount") AS "$__alias__0"
    FROM "public"."orders" "orders"
    WHERE ("orders"."status" = 'paid')
    GROUP BY 1
    HAVING (SUM("orders"."total_amount") > 100)
  ) "t0" ON ("orders"."country" = "t0"."country")
WHERE (("orders"."status" = 'paid') AND ("orders"."order_date" >= (DATE '2024-01-01')))
GROUP BY 1;

-- Tableau, relative dates
SELECT COUNT(DISTINCT "events"."user_id") AS "ctd:user_id:ok", CAST(TRUNC(EXTRACT(YEAR FROM "events"."event_time")) AS INTEGER) AS "yr"
FROM "public"."events" "events"
WHERE (NOT ("events"."event_type" IN ('ping', 'heartbeat'))) AND "events"."device" LIKE 'ios%'
GROUP BY 2;

-- Looker
WITH order_facts AS (SELECT customer_id, MIN(order_date) AS first_order, COUNT(*) AS n FROM orders WHERE status <> 'cancelled' GROUP BY 1)
SELECT customers.segment AS "customers.segment", COUNT(DISTINCT customers.customer_id) AS "customers.count",
       COALESCE(SUM(order_facts.n), 0) AS "order_facts.total"
FROM customers LEFT JOIN order_facts ON order_facts.customer_id = customers.customer_id
WHERE ((customers.country) = 'DE') AND ((order_facts.first_order) >= DATE '2024-02-01')
GROUP BY 1 ORDER BY 2 DESC LIMIT 500;

-- casts with two colons, ILIKE, and a list cast to an array
SELECT order_id::text, total_amount::numeric(14,2) FROM orders WHERE order_date >= '2024-03-01'::date AND notes ILIKE '%refund%';
SELECT count(*) FROM orders WHERE status = ANY (ARRAY['paid', 'shipped']) AND store_id = 3;
SELECT customer_id FROM customers WHERE email ~* '@example\.com$' AND signup_date < '2024-01-01';

-- cohort retention with windows
WITH first_orders AS (
  SELECT customer_id, order_date, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY order_date, order_id) AS rn
  FROM orders
  WHERE status = 'paid'
), cohorts AS (
  SELECT customer_id, DATE_TRUNC('month', order_date) AS cohort FROM first_orders WHERE rn = 1
)
SELECT c.cohort, COUNT(DISTINCT o.customer_id) AS active
FROM cohorts c JOIN orders o ON o.customer_id = c.customer_id AND o.status = 'paid'
WHERE o.order_date >= DATE '2024-01-01' AND o.country = 'SE'
GROUP BY c.cohort ORDER BY c.cohort;

-- the latest order of each customer
SELECT DISTINCT ON (customer_id) customer_id, order_id, order_date FROM orders WHERE channel = 'web' ORDER BY customer_id, order_date DESC, order_id;

-- lateral join
SELECT c.name, last.order_date
FROM customers c
CROSS JOIN LATERAL (SELECT o.order_date FROM orders o WHERE o.customer_id = c.customer_id AND o.status = 'shipped' ORDER BY o.order_date DESC LIMIT 1) last
WHERE c.segment = 'consumer';

-- filter clauses and a generated calendar
SELECT d.day::date, count(o.order_id) FILTER (WHERE o.status = 'paid') AS paid, count(o.order_id) FILTER (WHERE o.is_gift) AS gifts
FROM generate_series(date '2024-01-01', date '2024-01-31', interval '1 day') AS d(day)
LEFT JOIN orders o ON o.order_date = d.day::date AND o.country = 'NO'
GROUP BY 1 ORDER BY 1;

-- unions of sources under one dimension
SELECT 'order' AS kind, country, count(*) AS n FROM orders WHERE order_date >= date '2024-02-01' GROUP BY country
UNION ALL
SELECT 'customer', country, count(*) FROM customers WHERE signup_date >= date '2024-02-01' GROUP BY country
ORDER BY 3 DESC;

-- exists and not exists
SELECT p.category, count(*) FROM products p
WHERE NOT p.discontinued AND EXISTS (SELECT 1 FROM order_items i WHERE i.product_id = p.product_id AND i.returned) GROUP BY p.category;
SELECT c.customer_id FROM customers c WHERE c.country = 'FI' AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.order_date >= date '2024-01-15');

-- json, percentiles and grouping sets
SELECT properties::json ->> 'campaign' AS campaign, count(*) FROM events WHERE event_type = 'click' AND device = 'web' GROUP BY 1;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY duration_ms) FROM events WHERE page = '/checkout' AND duration_ms > 0;
SELECT country, channel, sum(total_amount) FROM orders WHERE order_date < date '2024-06-01' GROUP BY GROUPING SETS ((country, channel), (country), ());

-- relative to now
SELECT count(*) FROM orders WHERE created_at > now() - interval '7 days' AND status = 'open';

-- pg_catalog, asked by every driver
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r';
SET search_path TO analytics, public;
SHOW transaction_isolation;

-- half a statement, cut by a log
SELECT country, sum(total_amount) FROM orders WHERE order_date >= date '2024-01-01' AND (status = 'paid' GROUP BY;

-- a column that is not there
SELECT ordr_date FROM orders WHERE status = 'paid';

SELECT x.country FROM (SELECT country, rank() OVER (ORDER BY sum(total_amount) DESC) AS r FROM orders WHERE is_gift IS NOT TRUE GROUP BY country) x WHERE x.r <= 3;
SELECT a.customer_id FROM orders a INNER JOIN orders b USING (customer_id) WHERE a.channel = 'web' AND b.channel = 'store' AND a.order_date < b.order_date
