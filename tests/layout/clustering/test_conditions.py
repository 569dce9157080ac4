"""What the rows of a sample satisfy, told as the writer of blocks will find it."""

from __future__ import annotations

import pyarrow as pa

from skipstone.layout.clustering.conditions import true_rows
from skipstone.predicate.evaluation import Evaluator
from skipstone.predicate.parsing import parse_filter
from skipstone.relayout.splitting import feature_bits


def test_what_arrow_cannot_evaluate_may_be_true_for_all_rows_as_it_is_when_blocks_are_written() -> None:
    """Else a feature that nothing is skipped by would look like one that everything is skipped by."""
    rows = pa.table({"n": [1, 5, None, 9]})
    filters = [
        parse_filter(text, rows.schema)
        for text in ("score_of(n) > 3", "score_of(n) > 3 AND n > 4", "n > 4", "n IS NULL OR score_of(n) = 1")
    ]
    found = true_rows(filters, rows)
    assert found.T.tolist() == [[True] * 4, [False, True, False, True], [False, True, False, True], [True] * 4]
    written = feature_bits([Evaluator(one) for one in filters], rows.to_batches()[0])
    assert found.tolist() == written.tolist()
