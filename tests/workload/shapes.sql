-- One query a line. $1 .. $4 are small constants. Tables t1 .. t4 have columns (id, a, b int, s text), some rows, and NULLs.
-- each line: the answer must not change when every table holds only the rows and columns that its request asks for
SELECT id, a FROM t1 WHERE b = $1
SELECT a FROM t1 WHERE a > $1 AND b <= $2
SELECT a FROM t1 WHERE a = $1 OR b = $2
SELECT a FROM t1 WHERE NOT (a = $1 OR b = $2)
SELECT a FROM t1 WHERE NOT (a = $1 AND b = $2)
SELECT count(*) FROM t1
SELECT count(*) FROM t1 WHERE s = 'x'
SELECT * FROM t1 WHERE a IN ($1, $2)
SELECT * EXCLUDE (s) FROM t1 WHERE a NOT IN ($1, $2)
SELECT a FROM t1 WHERE b IS NULL
SELECT a FROM t1 WHERE b IS NOT NULL AND a IS DISTINCT FROM $1
SELECT a FROM t1 WHERE 1 = 0
SELECT count(*) FROM t1 WHERE 1 = 0
SELECT a FROM t1 WHERE a BETWEEN $1 AND $2
SELECT a FROM t1 WHERE coalesce(a, 0) = $1
SELECT a FROM t1 WHERE CASE WHEN a = 1 THEN b = $1 ELSE s = 'x' END
SELECT t1.a FROM t1, t2 WHERE t1.a = t2.a AND t1.b = $1 AND t2.b > $2
SELECT t1.a, t2.b FROM t1 JOIN t2 ON t1.a = t2.a AND t2.b = $1 WHERE t1.b >= $2
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a AND t2.b = $1 WHERE t1.b >= $2
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a AND t1.b = $1
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a WHERE t2.b = $1
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a WHERE t2.b IS NULL
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a WHERE t2.b IS NULL AND t1.b = $1
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a WHERE coalesce(t2.b, $1) = $1
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a WHERE t2.b = $1 OR t1.b = $2
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a WHERE t2.b = $1 OR t2.a = $2
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a WHERE NOT (t2.b = $1)
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a WHERE NOT (t2.b IS NULL)
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a WHERE (t2.b = $1) IS NULL
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a WHERE t1.a = $1
SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a WHERE t2.a IS NOT DISTINCT FROM $1
SELECT t1.a, t2.b FROM t1 RIGHT JOIN t2 ON t1.a = t2.a AND t1.b = $1 WHERE t2.b = $2
SELECT t1.a, t2.b FROM t1 RIGHT JOIN t2 ON t1.a = t2.a WHERE t1.b = $2
SELECT t1.a, t2.b FROM t1 RIGHT JOIN t2 ON t1.a = t2.a AND t2.b = $2
SELECT t1.a, t2.b FROM t1 FULL JOIN t2 ON t1.a = t2.a AND t1.b = $1 AND t2.b = $2
SELECT t1.a, t2.b FROM t1 FULL JOIN t2 ON t1.a = t2.a WHERE t1.b = $1
SELECT t1.a, t2.b FROM t1 FULL JOIN t2 ON t1.a = t2.a WHERE t2.b = $1
SELECT t1.a, t2.b FROM t1 FULL JOIN t2 ON t1.a = t2.a WHERE t1.b = $1 AND t2.b = $2
SELECT t1.a, t2.b FROM t1 FULL JOIN t2 ON t1.a = t2.a WHERE t1.b IS NULL
SELECT a, count(*) FROM t1 FULL JOIN t2 USING (a) WHERE a = $1 GROUP BY a
SELECT a, count(*) FROM t1 LEFT JOIN t2 USING (a) WHERE a = $1 GROUP BY a
SELECT a, t2.b FROM t1 JOIN t2 USING (a) WHERE a = $1
SELECT a, t3.b FROM t1 JOIN t2 USING (a) LEFT JOIN t3 USING (a) WHERE a = $1 AND t3.b = $2
SELECT a, t3.b FROM t1 RIGHT JOIN t2 USING (a) LEFT JOIN t3 USING (a) WHERE a = $1
SELECT * FROM t1 NATURAL JOIN t2 WHERE a = $1
SELECT t1.a FROM t1 SEMI JOIN t2 ON t1.a = t2.a AND t2.b = $1 WHERE t1.b = $2
SELECT t1.a FROM t1 SEMI JOIN t2 ON t1.a = t2.a AND t1.b = $1
SELECT t1.a FROM t1 ANTI JOIN t2 ON t1.a = t2.a AND t2.b = $1 WHERE t1.b = $2
SELECT t1.a FROM t1 ANTI JOIN t2 ON t1.a = t2.a AND t1.b = $1
SELECT t1.a FROM t1 ANTI JOIN t2 ON t1.a = t2.a WHERE t1.a = $1
SELECT t1.a FROM t1 CROSS JOIN t2 WHERE t1.a = t2.a AND t2.a = $1
SELECT t1.a FROM t1 JOIN t2 ON t1.a = t2.b JOIN t3 ON t2.b = t3.a WHERE t3.a = $1
SELECT t1.a FROM t1 JOIN t2 ON t1.a = t2.b LEFT JOIN t3 ON t2.b = t3.a AND t3.b = $2 WHERE t1.a > $1
SELECT t1.a, t3.b FROM t1 LEFT JOIN t2 ON t1.a = t2.b LEFT JOIN t3 ON t2.b = t3.a WHERE t3.b = $1
SELECT t1.a, t3.b FROM t1 LEFT JOIN t2 ON t1.a = t2.b JOIN t3 ON t2.b = t3.a WHERE t3.b = $1
SELECT t1.a, t3.b FROM t1 LEFT JOIN (t2 JOIN t3 ON t2.a = t3.a AND t3.b = $1) ON t1.a = t2.b
SELECT t1.a, t3.b FROM t1 LEFT JOIN (t2 JOIN t3 ON t2.a = t3.a) ON t1.a = t2.b WHERE t3.b = $1
SELECT t1.a, t3.b FROM t1, t2 LEFT JOIN t3 ON t2.a = t3.a AND t3.b = $1 WHERE t1.a = t2.a AND t2.b = $2
SELECT t1.a, t3.b FROM t1, t2 RIGHT JOIN t3 ON t2.a = t3.a AND t3.b = $1 WHERE t1.b = $2
SELECT t1.a, t3.b FROM t1, t2 FULL JOIN t3 ON t2.a = t3.a AND t3.b = $1 WHERE t1.b = $2
SELECT t1.a FROM t1 JOIN t2 ON (t1.a = $1 AND t2.b = $2) OR (t1.a = $3 AND t2.b = $4)
SELECT t1.a FROM t1, t2 WHERE t1.a = t2.a AND ((t1.b = $1 AND t2.s = 'x') OR (t1.b = $2 AND t2.s = 'y'))
SELECT t1.a FROM t1, t2 WHERE t1.a = t2.a AND (t1.b = $1 OR t2.s = 'x')
SELECT t1.a FROM t1 LEFT JOIN t2 ON t1.a = t2.a WHERE (t1.b = $1 AND t2.s = 'x') OR (t1.b = $2 AND t2.s = 'y')
SELECT t1.a FROM t1 JOIN t2 ON t1.a = t2.s WHERE t1.a = $1
SELECT t1.a FROM t1 JOIN t2 ON t1.s = t2.s WHERE t1.s LIKE 'x%'
SELECT t1.id FROM t1 POSITIONAL JOIN t2 WHERE t2.a = $1
SELECT t1.id, t2.b FROM t1 ASOF JOIN t2 ON t1.a >= t2.a WHERE t2.b = $1 AND t1.b = $2
SELECT a, sum(b) FROM t1 WHERE s = 'x' GROUP BY a HAVING sum(b) > $1
SELECT a, sum(b) FROM t1 GROUP BY a HAVING a = $1
SELECT a, sum(b) FROM t1 GROUP BY a HAVING a = $1 OR sum(b) > $2
SELECT a + 1, sum(b) FROM t1 GROUP BY a + 1 HAVING a + 1 = $1
SELECT a, b, count(*) FROM t1 GROUP BY ROLLUP (a, b) HAVING a = $1
SELECT a, b, count(*) FROM t1 GROUP BY GROUPING SETS ((a), (b)) HAVING b IS NULL
SELECT a, count(*) FROM t1 GROUP BY ALL HAVING a = $1
SELECT max(a) FROM t1 HAVING max(a) > $1
SELECT * FROM (SELECT a, sum(b) AS n FROM t1 GROUP BY a) d WHERE a = $1
SELECT * FROM (SELECT a, sum(b) AS n FROM t1 GROUP BY a) d WHERE n = $1
SELECT * FROM (SELECT a, sum(b) AS n FROM t1 GROUP BY a) d WHERE n > $1 OR a = $2
SELECT * FROM (SELECT a + b AS k, count(*) AS n FROM t1 GROUP BY a + b) d WHERE k = $1
SELECT * FROM (SELECT a, b, count(*) AS n FROM t1 GROUP BY CUBE (a, b)) d WHERE a = $1
SELECT * FROM (SELECT max(a) AS m, min(b) AS n FROM t1) d WHERE m = $1
SELECT * FROM (SELECT 5 AS c, count(*) AS n FROM t1) d WHERE c = $1
SELECT * FROM (SELECT 1 AS c, count(*) AS n FROM t1) d WHERE c = $1
SELECT * FROM (SELECT a AS x, b + 1 AS y FROM t1 WHERE s = 'x') d WHERE x = $1 AND y > $2
SELECT x FROM (SELECT a AS x, b AS y FROM t1) AS d WHERE y = $1
SELECT p FROM (SELECT a, b FROM t1) AS d(p, q) WHERE q = $1
SELECT a FROM (SELECT * FROM t1) AS d WHERE b = $1
SELECT a FROM (SELECT * FROM (SELECT * FROM t1 WHERE s = 'x') AS e) AS d WHERE b = $1
SELECT count(*) FROM (SELECT * FROM t1) AS d
SELECT count(*) FROM (SELECT DISTINCT * FROM t1) AS d WHERE a = $1
SELECT DISTINCT a FROM (SELECT DISTINCT a, b FROM t1) AS d WHERE b = $1
SELECT * FROM (SELECT DISTINCT ON (a) a, b FROM t1 ORDER BY a, b, id) d WHERE b = $1
SELECT * FROM (SELECT id, a, b FROM t1 ORDER BY id LIMIT 2) d WHERE a = $1
SELECT * FROM (SELECT id, a, b FROM t1 ORDER BY id LIMIT 2 OFFSET 1) d WHERE a = $1
SELECT * FROM (SELECT id, a, b FROM t1 ORDER BY id OFFSET 2) d WHERE a = $1
SELECT * FROM (SELECT id, a, b FROM t1 WHERE b = $2 ORDER BY id LIMIT 2) d WHERE a = $1
SELECT * FROM ((SELECT id, a FROM t1 ORDER BY id) LIMIT 3) d WHERE a = $1
SELECT id, a FROM t1 WHERE b = $1 ORDER BY id LIMIT 1
SELECT * FROM (SELECT a, row_number() OVER (PARTITION BY b ORDER BY id) AS r FROM t1) d WHERE r = 1
SELECT * FROM (SELECT a, b, row_number() OVER (PARTITION BY b ORDER BY id) AS r FROM t1) d WHERE b = $1 AND r = 1
SELECT * FROM (SELECT a, b, row_number() OVER (PARTITION BY b ORDER BY id) AS r FROM t1) d WHERE a = $1
SELECT * FROM (SELECT a, b, row_number() OVER (ORDER BY id) AS r FROM t1) d WHERE b = $1
SELECT * FROM (SELECT a, b, sum(b) OVER w AS r FROM t1 WINDOW w AS (PARTITION BY a)) d WHERE a = $1
SELECT * FROM (SELECT a, b, sum(id) OVER (PARTITION BY a, b) AS r, max(id) OVER (PARTITION BY a) AS m FROM t1) d WHERE a = $1
SELECT * FROM (SELECT a, b, sum(id) OVER (PARTITION BY a, b) AS r, max(id) OVER (PARTITION BY a) AS m FROM t1) d WHERE b = $1
SELECT * FROM (SELECT a, count(*) AS n, rank() OVER (ORDER BY count(*)) AS r FROM t1 GROUP BY a) d WHERE a = $1
SELECT * FROM (SELECT a, b FROM t1 QUALIFY row_number() OVER (PARTITION BY a ORDER BY id) = 1) d WHERE b = $1
SELECT * FROM (SELECT a, b FROM t1 QUALIFY row_number() OVER (PARTITION BY a ORDER BY id) = 1) d WHERE a = $1
SELECT a, b FROM t1 WHERE b = $1 QUALIFY row_number() OVER (PARTITION BY a ORDER BY id) = 1
SELECT a, sum(id) OVER (PARTITION BY b) FROM t1 WHERE b = $1
SELECT * FROM (SELECT a FROM t1 UNION ALL SELECT b FROM t2) d WHERE a = $1
SELECT * FROM (SELECT a, s FROM t1 UNION SELECT b, s FROM t2 WHERE b > $2) d WHERE a = $1
SELECT * FROM (SELECT a FROM t1 WHERE b = $2 EXCEPT SELECT a FROM t2) d WHERE a >= $1
SELECT * FROM (SELECT a FROM t1 INTERSECT SELECT b FROM t2 WHERE a = $2) d WHERE a >= $1
SELECT * FROM (SELECT a FROM t1 EXCEPT ALL SELECT b FROM t2) d WHERE a >= $1
SELECT * FROM (SELECT s AS k FROM t1 UNION ALL SELECT CAST(b AS VARCHAR) FROM t2) d WHERE k > '1'
SELECT * FROM (SELECT a AS k FROM t1 UNION ALL SELECT s FROM t2) d WHERE k > '10'
SELECT * FROM (SELECT 'p' AS k, a FROM t1 UNION ALL SELECT 'q', a FROM t2) d WHERE k = 'p' AND a = $1
SELECT * FROM (SELECT a FROM t1 UNION ALL SELECT a FROM t2 ORDER BY a LIMIT 2) d WHERE a = $1
SELECT * FROM (SELECT a, b FROM t1 UNION ALL BY NAME SELECT b, a FROM t2) d WHERE a = $1
SELECT * FROM (SELECT * FROM t1 UNION ALL SELECT * FROM t2) d WHERE a = $1
SELECT a FROM t1 WHERE b = $1 UNION SELECT a FROM t2 WHERE b = $2 ORDER BY 1 LIMIT 3
WITH w AS (SELECT * FROM t1) SELECT a FROM w WHERE b = $1
WITH w AS (SELECT * FROM t1) SELECT x.a FROM w AS x JOIN w AS y ON x.a = y.a WHERE x.b = $1 AND y.b = $2
WITH w AS (SELECT * FROM t1) SELECT x.a FROM w AS x JOIN w AS y ON x.a = y.a WHERE x.b = $1
WITH w AS (SELECT * FROM t1) SELECT a FROM w WHERE b = $1 UNION ALL SELECT a FROM w WHERE a = $2 AND b > $3
WITH w AS (SELECT a, max(b) AS m FROM t1 GROUP BY a), v AS (SELECT * FROM w WHERE a > $1) SELECT * FROM v WHERE a < $2
WITH w AS (SELECT a, b FROM t1), v AS (SELECT a, b FROM w WHERE b = $1) SELECT v.a FROM v JOIN w ON v.a = w.a WHERE w.b = $2
WITH w AS (SELECT a FROM t1 WHERE b = $1), unused AS (SELECT * FROM t2 WHERE s = 'x') SELECT a FROM w
WITH RECURSIVE r AS (SELECT id, a FROM t1 WHERE id = 1 UNION ALL SELECT t2.id, t2.a FROM t2 JOIN r ON t2.id = r.id + 1 WHERE t2.a IS NOT NULL) SELECT * FROM r WHERE a = $1
WITH t1 AS (SELECT * FROM t2 WHERE b = $1) SELECT a FROM t1 WHERE a = $2
WITH w AS MATERIALIZED (SELECT * FROM t1) SELECT a FROM w WHERE b = $1
SELECT * FROM (WITH w AS (SELECT * FROM t1) SELECT a, b FROM w WHERE s = 'x') d WHERE b = $1
WITH a AS (SELECT * FROM t1 WHERE b = $1) SELECT * FROM (WITH a AS (SELECT * FROM a WHERE a = $2) SELECT s FROM a) d
SELECT a FROM t1 WHERE a IN (SELECT a FROM t2 WHERE b = $1) AND b = $2
SELECT a FROM t1 WHERE a NOT IN (SELECT a FROM t2 WHERE b = $1)
SELECT a FROM t1 WHERE EXISTS (SELECT 1 FROM t2 WHERE t2.a = t1.a AND t2.b = $1) AND b = $2
SELECT a FROM t1 WHERE NOT EXISTS (SELECT 1 FROM t2 WHERE t2.a = t1.a AND t2.b = $1 AND t1.b = $2)
SELECT a FROM t1 WHERE EXISTS (SELECT 1 FROM t2 WHERE t2.a = t1.a AND t1.b = $1)
SELECT a FROM t1 WHERE b = (SELECT max(b) FROM t2 WHERE t2.a = t1.a AND t2.s = 'x')
SELECT a FROM t1 WHERE b > (SELECT avg(b) FROM t2 WHERE s = 'x')
SELECT a FROM t1 WHERE b > (SELECT count(*) FROM t2 WHERE t2.a = t1.a)
SELECT a, (SELECT max(b) FROM t2 WHERE t2.a = t1.a AND b < $1) FROM t1 WHERE b = $2
SELECT a, (SELECT count(*) FROM t2 WHERE t2.a = t1.a AND t1.b = $1) FROM t1
SELECT a FROM t1 WHERE a = $1 OR EXISTS (SELECT 1 FROM t2 WHERE t2.a = t1.a)
SELECT a FROM t1 WHERE a > ALL (SELECT a FROM t2 WHERE b = $1)
SELECT a FROM t1 WHERE a = ANY (SELECT a FROM t2 WHERE b = $1)
SELECT d.m FROM t1, LATERAL (SELECT max(b) AS m FROM t2 WHERE t2.a = t1.a AND t2.b > $1) d WHERE t1.b = $2
SELECT t1.id, d.b FROM t1, LATERAL (SELECT b FROM t2 WHERE t2.a = t1.a) d WHERE d.b = $1
SELECT t1.id, d.b FROM t1 LEFT JOIN LATERAL (SELECT b FROM t2 WHERE t2.a = t1.a) d ON true WHERE d.b = $1
SELECT t1.id, d.b FROM t1 LEFT JOIN LATERAL (SELECT b FROM t2 WHERE t2.a = t1.a AND t1.b = $1) d ON true
SELECT t1.id, d.b FROM t1, LATERAL (SELECT b FROM t2 WHERE t2.a = t1.a ORDER BY id LIMIT 1) d WHERE d.b = $1
SELECT t1.id, u.v FROM t1, UNNEST([a, b]) AS u(v) WHERE u.v = $1 AND t1.b = $2
SELECT id, unnest([a, b]) AS v FROM t1 WHERE a = $1
SELECT * FROM (SELECT a, unnest([a, b]) AS v FROM t1) d WHERE v = $1 AND a = $2
SELECT x.a, y.b FROM t1 x JOIN t2 y ON x.a = y.a AND x.b = y.b WHERE x.a = $1 AND y.b = $2
SELECT sum(CASE WHEN b = $1 THEN 1 ELSE 0 END) FROM t1
SELECT count(*) FILTER (WHERE b = $1) FROM t1 WHERE a = $2
SELECT a, count(DISTINCT b) FROM t1 WHERE s IN ('x', 'y') GROUP BY 1 ORDER BY 1
SELECT a AS b, b AS a FROM t1 WHERE b = $1 ORDER BY b, a
SELECT a + b AS total FROM t1 WHERE a + b > $1 ORDER BY total
SELECT s || 'z' AS z FROM t1 WHERE s || 'z' = 'xz'
SELECT a FROM (SELECT a, s || 'z' AS z FROM t1) d WHERE z = 'xz'
SELECT d.a FROM (SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a) d WHERE d.b = $1
SELECT d.a FROM (SELECT t1.a, t2.b FROM t1 LEFT JOIN t2 ON t1.a = t2.a) d WHERE d.b IS NULL AND d.a = $1
SELECT d.a FROM (SELECT t1.a, coalesce(t2.b, 0) AS b FROM t1 LEFT JOIN t2 ON t1.a = t2.a) d WHERE d.b = $1
SELECT t3.a, d.b FROM t3 LEFT JOIN (SELECT a, b FROM t1 WHERE s = 'x') d ON t3.a = d.a AND d.b = $1
SELECT t3.a, d.n FROM t3 LEFT JOIN (SELECT a, count(*) AS n FROM t1 GROUP BY a) d ON t3.a = d.a WHERE t3.a = $1
SELECT t3.a, d.n FROM t3 LEFT JOIN (SELECT a, count(*) AS n FROM t1 GROUP BY a) d ON t3.a = d.a WHERE d.a = $1
SELECT a FROM t1 TABLESAMPLE 100 PERCENT WHERE b = $1
SELECT * FROM (PIVOT (SELECT a, b, s FROM t1) ON s IN ('x', 'y') USING sum(b)) WHERE a = $1
SELECT * FROM (UNPIVOT (SELECT id, a, b FROM t1) ON a, b INTO NAME n VALUE v) WHERE v = $1
SELECT t1 FROM t1 WHERE b = $1
SELECT COLUMNS('a|b') FROM t1 WHERE s = 'x'
FROM t1 SELECT a WHERE b = $1
SELECT a FROM t1 WHERE (a, b) = ($1, $2)
SELECT a FROM t1 WHERE (a, b) IN (($1, $2), ($3, $4))
SELECT a FROM t1 WHERE b = $1 AND s LIKE 'x%' AND length(s) = 1
SELECT t1.a FROM t1 JOIN t2 ON t1.a = t2.a OR t2.b = $1 WHERE t1.b = $2
SELECT t1.a FROM t1 LEFT JOIN t2 ON false WHERE t1.b = $1
SELECT t1.a FROM t1 LEFT JOIN t2 ON t1.a = t2.a AND false
SELECT t1.a FROM t1 JOIN t2 ON true WHERE t1.a = t2.a AND t2.a = $1 AND t1.a = $2
