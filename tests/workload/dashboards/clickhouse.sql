-- Grafana
SELECT toStartOfHour(event_time) AS t, count() AS c FROM events WHERE event_time >= toDateTime(1704067200) AND event_time <= toDateTime(1706745600) AND event_type = 'view' GROUP BY t ORDER BY t;
SELECT toStartOfMonth(order_date) AS m, sum(total_amount) FROM orders WHERE order_date >= toDate('2024-01-01') AND status = 'paid' GROUP BY m;
SELECT country, uniq(customer_id), countIf(is_gift) FROM orders PREWHERE order_date >= '2024-02-01' WHERE status = 'paid' GROUP BY country;
SELECT country, any(channel) FROM orders FINAL WHERE store_id = 2 GROUP BY country;
SELECT page, quantile(0.9)(duration_ms) FROM events WHERE device = 'ios' GROUP BY page LIMIT 5 BY page;
SELECT arrayJoin(splitByChar(' ', title)) AS word, count() FROM products WHERE category = 'toys' GROUP BY word;
SELECT JSONExtractString(properties, 'campaign') AS c, count() FROM events WHERE event_type = 'click' GROUP BY c;
SELECT order_id FROM orders WHERE has(['SE', 'NO'], country) AND status = 'paid';
SELECT order_id FROM orders WHERE country GLOBAL IN (SELECT country FROM customers WHERE segment = 'consumer') AND status = 'paid';
SELECT order_id FROM orders ANY LEFT JOIN customers USING (customer_id) WHERE segment = 'consumer' AND status = 'paid';
SELECT order_id FROM orders SAMPLE 0.1 WHERE status = 'paid';
SELECT order_id, total_amount FROM orders WHERE order_date BETWEEN '2024-01-01' AND '2024-01-31' AND total_amount > 50 ORDER BY total_amount DESC LIMIT 10 WITH TIES;
SELECT order_id FROM orders WHERE match(notes, 'refund') AND status = 'paid' SETTINGS max_threads = 4;
SELECT order_id FROM orders WHERE status = {status:String};
SELECT order_id FROM orders WHERE event_date = today() AND status = 'paid';
SELECT order_id FROM orders WHERE order_date = yesterday() AND status = 'paid';
WITH (SELECT max(order_date) FROM orders) AS last SELECT count() FROM orders WHERE order_date = last AND country = 'SE';
WITH 10 AS least SELECT count() FROM orders WHERE total_amount > least AND country = 'SE';
SELECT count() FROM orders WHERE not (status = 'cancelled') AND country != 'XX' FORMAT JSON;
SELECT user_id, groupArray(page) FROM events WHERE session_id IN ('s1', 's2') GROUP BY user_id;
SELECT sumIf(total_amount, channel = 'web') / sum(total_amount) FROM orders WHERE toYear(order_date) = 2024 AND toYYYYMM(order_date) = 202401;
SELECT country, channel, sum(total_amount) FROM orders WHERE status = 'paid' GROUP BY country, channel WITH TOTALS;
SELECT c.name FROM customers AS c LEFT ANTI JOIN orders AS o ON o.customer_id = c.customer_id WHERE c.country = 'DE';
SELECT number FROM numbers(10);
SYSTEM FLUSH LOGS;
SELECT multiIf(total_amount < 10, 'a', total_amount < 100, 'b', 'c') AS bucket, count() FROM orders WHERE lower(status) = 'paid' GROUP BY bucket
