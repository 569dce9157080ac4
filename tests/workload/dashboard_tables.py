"""The tables that the dashboards of `dashboards/*.sql` ask: a shop that does not exist."""

from __future__ import annotations

import pyarrow as pa

TABLES = {
    "orders": pa.schema(
        [
            ("order_id", pa.int64()),
            ("customer_id", pa.int64()),
            ("order_date", pa.date32()),
            ("created_at", pa.timestamp("us")),
            ("status", pa.string()),
            ("channel", pa.string()),
            ("country", pa.string()),
            ("total_amount", pa.decimal128(12, 2)),
            ("discount", pa.float64()),
            ("is_gift", pa.bool_()),
            ("store_id", pa.int32()),
            ("notes", pa.string()),
        ]
    ),
    "order_items": pa.schema(
        [
            ("item_id", pa.int64()),
            ("order_id", pa.int64()),
            ("product_id", pa.int64()),
            ("quantity", pa.int32()),
            ("unit_price", pa.decimal128(10, 2)),
            ("returned", pa.bool_()),
        ]
    ),
    "customers": pa.schema(
        [
            ("customer_id", pa.int64()),
            ("name", pa.string()),
            ("email", pa.string()),
            ("segment", pa.string()),
            ("city", pa.string()),
            ("country", pa.string()),
            ("signup_date", pa.date32()),
            ("is_active", pa.bool_()),
            ("referrer_id", pa.int64()),
        ]
    ),
    "products": pa.schema(
        [
            ("product_id", pa.int64()),
            ("title", pa.string()),
            ("category", pa.string()),
            ("brand", pa.string()),
            ("price", pa.decimal128(10, 2)),
            ("discontinued", pa.bool_()),
        ]
    ),
    "events": pa.schema(
        [
            ("event_id", pa.int64()),
            ("session_id", pa.string()),
            ("user_id", pa.int64()),
            ("event_type", pa.string()),
            ("event_time", pa.timestamp("us")),
            ("page", pa.string()),
            ("device", pa.string()),
            ("properties", pa.string()),
            ("duration_ms", pa.int32()),
        ]
    ),
}
