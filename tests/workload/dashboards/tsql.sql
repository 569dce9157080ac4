-- Power BI, DirectQuery
SELECT TOP (1000001) *
FROM (
  SELECT [t0].[country], SUM([t0].[total_amount]) AS [a0]
  FROM (
    (SELECT [_].[order_id], [_].[country], [_].[total_amount], [_].[status] FROM [dbo].[orders] AS [_] WHERE [_].[status] = N'paid')
  ) AS [t0]
  GROUP BY [t0].[country]
) AS [MainTable]
WHERE NOT([a0] IS NULL);

SELECT TOP 10 customer_id, SUM(total_amount) AS s FROM dbo.orders WITH (NOLOCK) WHERE order_date >= '20240101' GROUP BY customer_id ORDER BY s DESC;
SELECT DATEPART(year, order_date) AS y, COUNT_BIG(*) FROM orders WHERE order_date >= CONVERT(date, '2024-01-01') AND order_date < DATEADD(month, 3, CAST('2024-01-01' AS date)) GROUP BY DATEPART(year, order_date);
SELECT ISNULL(segment, 'none') AS segment, COUNT(*) FROM customers WHERE is_active = 1 AND country IN (N'SE', N'NO') GROUP BY ISNULL(segment, 'none');
SELECT o.order_id, x.page FROM orders o OUTER APPLY (SELECT TOP 1 e.page FROM events e WHERE e.user_id = o.customer_id AND e.event_type = 'view' ORDER BY e.event_time DESC) x WHERE o.status = 'paid';
SELECT o.order_id, x.n FROM orders o CROSS APPLY (SELECT COUNT(*) AS n FROM order_items i WHERE i.order_id = o.order_id AND i.returned = 0) x WHERE o.channel = 'web';
SELECT country, [web], [store] FROM (SELECT country, channel, total_amount FROM orders WHERE order_date > '2024-01-31') s PIVOT (SUM(total_amount) FOR channel IN ([web], [store])) p;
WITH ranked AS (SELECT product_id, category, price, ROW_NUMBER() OVER (PARTITION BY category ORDER BY price DESC) AS rn FROM products WHERE discontinued = 0)
SELECT category, product_id FROM ranked WHERE rn = 1 AND category <> 'misc';
SELECT DATEDIFF(day, c.signup_date, o.order_date) AS days, COUNT(*) FROM orders o INNER JOIN customers c ON c.customer_id = o.customer_id AND c.country = 'DE' WHERE o.is_gift = 1 GROUP BY DATEDIFF(day, c.signup_date, o.order_date);
SELECT COUNT(*) FROM events WHERE event_time >= DATEADD(day, -7, GETDATE()) AND device = 'ios';
SELECT COUNT(*) FROM events WHERE CAST(event_time AS date) = '2024-02-01' AND page LIKE '/p[0-9]%';
SELECT STRING_AGG(brand, ',') FROM products WHERE category = 'toys' AND price > $10;
SELECT order_id FROM orders WHERE status = @status AND country = 'SE';
SELECT order_id FROM orders WHERE total_amount BETWEEN 10 AND 20 ORDER BY order_id OFFSET 0 ROWS FETCH NEXT 50 ROWS ONLY;
SELECT CASE WHEN total_amount >= 100 THEN 'big' ELSE 'small' END AS size, COUNT(*) FROM orders WHERE status <> 'cancelled' AND store_id = 2 GROUP BY CASE WHEN total_amount >= 100 THEN 'big' ELSE 'small' END;
SELECT IIF(is_gift = 1, 'gift', 'own') AS kind FROM orders WHERE channel = 'app';
SELECT c.name FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.order_date >= '2024-01-01' WHERE o.order_id IS NULL AND c.segment = 'consumer';
SELECT JSON_VALUE(properties, '$.campaign') FROM events WHERE event_type = 'click';
SELECT status, COUNT(*) FROM orders WHERE order_date = (SELECT MAX(order_date) FROM orders) GROUP BY status;
SELECT * FROM orders FOR SYSTEM_TIME AS OF '2024-05-01' WHERE status = 'paid';
EXEC sp_who2;
DECLARE @d date = '2024-01-01';
SELECT COUNT(*) FROM orders WHERE order_date > @d OPTION (RECOMPILE);
SELECT country FROM orders WHERE status = 'paid' UNION SELECT country FROM customers WHERE is_active = 1 EXCEPT SELECT 'XX';
SELECT order_id FROM orders WHERE LEN(notes) > 0 AND CHARINDEX('refund', notes) > 0 AND status = 'paid'
GO
SELECT TRY_CAST(notes AS int) FROM orders WHERE status = 'open'
GO
SELECT [order id] FROM orders WHERE [status] = 'paid'
