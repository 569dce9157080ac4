"""Blocks of a sample: numbered as the blocks of the whole would be, and none without a row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skipstone.layout.sampling import sampled_blocks
from skipstone.layout.whatif import describe_blocks
from skipstone.predicate.expression import Column
from skipstone.predicate.parsing import parse_filter

SCHEMA = pa.schema([("n", pa.int64())])


@pytest.mark.parametrize("rows", [50, 500, 5_000, 50_000, 50_000_000])
def test_every_block_has_a_row_however_few_of_the_rows_are_sampled(rows: int) -> None:
    """A sample of 50 rows cannot show the blocks of millions; what it shows is described without gaps."""
    chance = np.random.default_rng(rows)
    group, order = chance.integers(0, 7, 50).astype(np.int32), chance.integers(0, 9, 50).astype(np.uint64)
    block = sampled_blocks(group, order, rows=rows, block_rows=100)
    assert np.unique(block).tolist() == list(range(int(block.max()) + 1))


def test_a_sample_smaller_than_the_number_of_blocks_is_judged_row_by_row() -> None:
    sample = pa.table({"n": [3, None, 1, 2]}, schema=SCHEMA)
    block = sampled_blocks(np.zeros(4, np.int32), np.arange(4).astype(np.uint64), rows=1_000_000, block_rows=10)
    blocks = describe_blocks(sample, np.zeros((4, 0), np.bool_), (), block, [Column("n", pa.int64())])
    filters = [parse_filter("n >= 2", SCHEMA), parse_filter("n IS NULL", SCHEMA), parse_filter("n > 3", SCHEMA)]
    assert blocks.read_shares(filters).tolist() == [0.5, 0.25, 0.0]
