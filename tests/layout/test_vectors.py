"""Packing, counting and uniting feature vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipstone.errors import InvalidInput
from skipstone.layout.vectors import (
    Bits,
    DistinctVectors,
    distinct,
    find_words,
    pack,
    packed_width,
    union_of_words,
    unions,
    unpack,
    words,
)


@st.composite
def matrices(draw: st.DrawFn, max_rows: int = 40, max_features: int = 140) -> Bits:
    """Few different rows, so that equal ones meet; widths on both sides of a byte and of a word."""
    features = draw(st.sampled_from([0, 1, 7, 8, 9, 63, 64, 65, max_features]))
    seed = draw(st.integers(0, 2**32 - 1))
    rows = draw(st.integers(0, max_rows))
    random = np.random.default_rng(seed)
    pool = random.random((draw(st.integers(1, 8)), features)) < draw(st.sampled_from([0.02, 0.5, 0.98]))
    return pool[random.integers(0, len(pool), rows)]


@given(matrices())
def test_unpacking_undoes_packing_at_every_width(bits: Bits) -> None:
    packed = pack(bits)
    assert packed.shape == (len(bits), packed_width(bits.shape[1]))
    assert (unpack(packed, bits.shape[1]) == bits).all()


def test_bit_j_is_bit_j_mod_8_from_the_least_significant_of_byte_j_div_8() -> None:
    for feature in range(20):
        bits = np.zeros((1, 20), dtype=np.bool_)
        bits[0, feature] = True
        expected = [0, 0, 0]
        expected[feature // 8] = 1 << (feature % 8)
        assert pack(bits)[0].tolist() == expected


@given(matrices())
def test_words_are_equal_exactly_where_vectors_are(bits: Bits) -> None:
    rows = words(bits)
    assert rows.shape == (len(bits), max(1, -(-bits.shape[1] // 64)))
    assert [[(rows[i] == rows[j]).all() for j in range(len(bits))] for i in range(len(bits))] == [
        [(bits[i] == bits[j]).all() for j in range(len(bits))] for i in range(len(bits))
    ]


@given(matrices(), st.integers(0, 2**32 - 1))
def test_distinct_vectors_count_every_row_once_and_do_not_depend_on_row_order(bits: Bits, seed: int) -> None:
    vectors, which = distinct(bits)
    assert (vectors.bits[which] == bits).all()
    assert vectors.counts.tolist() == np.bincount(which, minlength=len(vectors)).tolist()
    assert vectors.rows == len(bits)
    assert len({row.tobytes() for row in vectors.bits}) == len(vectors)
    shuffled, _ = distinct(np.random.default_rng(seed).permutation(bits))
    assert (shuffled.bits == vectors.bits).all()
    assert (shuffled.counts == vectors.counts).all()


def test_distinct_vectors_come_in_the_order_of_their_packed_bytes() -> None:
    bits = np.random.default_rng(3).random((500, 19)) < 0.5
    vectors, _ = distinct(bits)
    packed = [row.tobytes() for row in pack(vectors.bits)]
    assert packed == sorted(packed)


def test_given_counts_are_added_up() -> None:
    vectors, _ = distinct(np.array([[True], [False], [True]]), np.array([5, 7, 11]))
    assert vectors.counts.tolist() == [7, 16]


def test_vectors_and_counts_must_be_as_many() -> None:
    with pytest.raises(InvalidInput, match="a matrix and a count for each row"):
        DistinctVectors(np.zeros((2, 3), dtype=np.bool_), np.array([1]))


@given(matrices(), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_a_union_has_a_bit_where_some_row_of_the_group_has_it(bits: Bits, groups: int, seed: int) -> None:
    group = np.random.default_rng(seed).integers(0, groups, len(bits))
    expected = np.array([bits[group == g].any(axis=0) for g in range(groups)]).reshape(groups, bits.shape[1])
    assert (unions(bits, group, groups) == expected).all()
    assert (union_of_words(words(bits), group, groups) == words(expected)).all()


@given(matrices(), matrices())
def test_known_vectors_are_found_and_others_are_not(known_rows: Bits, sought_rows: Bits) -> None:
    if known_rows.shape[1] != sought_rows.shape[1]:
        sought_rows = known_rows[::2]
    known, _ = distinct(known_rows)
    places = {row.tobytes(): place for place, row in enumerate(known.bits)}
    expected = [places.get(row.tobytes(), -1) for row in sought_rows]
    assert find_words(words(sought_rows), words(known.bits)).tolist() == expected


def test_many_distinct_rows_outgrow_the_first_hash_table() -> None:
    values = np.arange(20_000)
    bits = ((values[:, None] >> np.arange(15)) & 1).astype(np.bool_)
    vectors, which = distinct(np.concatenate([bits, bits]))
    assert len(vectors) == 20_000
    assert (vectors.counts == 2).all()
    assert (which[:20_000] == which[20_000:]).all()
