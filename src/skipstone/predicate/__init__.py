"""The algebra of filters: parse, bind, normalise, imply, bound, evaluate on Arrow, and print as SQL.

    parsing       SQL text in any dialect that sqlglot reads
    binding       names found in a schema, constants typed, NOT resolved under three-valued logic
    normalising   one canonical form, so that filters that say the same thing are equal values
    printing      the canonical text (Spark SQL), and the same for DuckDB

Values are in `expression` (columns, calls, constants) and `literal` (conditions, predicates, conjunctions). Nothing
here reads files or starts an engine.

>>> import pyarrow as pa
>>> from skipstone.predicate.parsing import parse_filter
>>> from skipstone.predicate.printing import sql
>>> schema = pa.schema([("quantity", pa.int32()), ("gift", pa.bool_())])
>>> one = parse_filter("NOT (quantity <= 24.5 OR NOT gift)", schema)
>>> other = parse_filter("gift AND 24 < quantity", schema)
>>> one == other, sql(one)
(True, 'gift = TRUE AND quantity > 24')
"""
