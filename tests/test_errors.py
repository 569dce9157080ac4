"""The sentences a person sees when something goes wrong."""

import skipstone.errors as errors
from skipstone.errors import ColumnNotFound, SkipstoneError, TableNotFound


def test_every_error_is_a_skipstone_error() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), SkipstoneError)


def test_a_missing_column_names_the_near_miss_and_keeps_the_facts() -> None:
    error = ColumnNotFound.among("Ammount", ["amount", "day"], where='table "sales"')
    assert str(error) == 'no column "Ammount" in table "sales". Did you mean "amount"? It has: amount, day'
    assert (error.name, error.nearest, error.available) == ("Ammount", "amount", ("amount", "day"))
    assert isinstance(error, KeyError)


def test_a_missing_table_in_an_empty_lake_lists_none() -> None:
    assert str(TableNotFound.among("sales", [], where="lake")) == 'no table "sales" in lake. Tables there: none'
