"""Workloads read from files: many statements, JSON lines, directories; nothing that is not understood is dropped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from skipstone.errors import InvalidInput, TableNotFound
from skipstone.predicate.printing import sql
from skipstone.workload.reading import Workload

TABLES = {
    "sales": pa.schema([("id", pa.int64()), ("shop", pa.string()), ("price", pa.int64()), ("sold", pa.date32())]),
    "shops": pa.schema([("name", pa.string()), ("city", pa.string())]),
}


def read(tmp_path: Path, content: str, name: str = "log.sql", **options: Any) -> Workload:
    (tmp_path / name).write_text(content)
    return Workload.read(tmp_path / name, TABLES, **options)


def filters(work: Workload, table: str = "sales") -> list[tuple[str, float]]:
    return [(sql(query.filter), query.weight) for query in work.queries(table)]


def lines(*records: object) -> str:
    return "\n".join(record if isinstance(record, str) else json.dumps(record) for record in records)


class TestSqlFiles:
    def test_statements_end_at_semicolons_outside_of_texts_and_comments(self, tmp_path: Path) -> None:
        work = read(
            tmp_path,
            "-- first; of two\nSELECT id FROM sales WHERE shop = 'a;b'; /* c; */\nSELECT id FROM sales WHERE price = 2",
        )
        assert filters(work) == [("shop = 'a;b'", 1), ("price = 2", 1)]

    def test_equal_requests_are_one_query_with_a_weight(self, tmp_path: Path) -> None:
        work = read(
            tmp_path,
            "SELECT id FROM sales WHERE price BETWEEN 1 AND 2;\n"
            "select s.id from sales s where not (s.price < 1 or 2 < s.price);\n"
            "SELECT shop FROM sales WHERE price BETWEEN 1 AND 2",
        )
        assert [(query.columns, query.weight) for query in work.queries("sales")] == [
            (("id", "price"), 2.0),
            (("price", "shop"), 1.0),
        ]

    def test_each_reference_to_a_table_is_a_request_of_its_own(self, tmp_path: Path) -> None:
        work = read(
            tmp_path,
            "WITH cheap AS (SELECT * FROM sales WHERE price < 5) SELECT c.shop, t.city FROM cheap c "
            "JOIN shops t ON t.name = c.shop WHERE t.city = 'Rome' AND c.shop > 'm' "
            "AND c.id IN (SELECT id FROM sales WHERE sold = '2024-01-01') GROUP BY ALL",
        )
        assert sorted(filters(work)) == [("price < 5 AND shop > 'm'", 1), ("sold = DATE '2024-01-01'", 1)]
        assert [query.filter.columns for query in work.queries("shops")] == [frozenset({"city", "name"})]

    def test_what_cannot_be_parsed_is_counted_with_its_line_and_the_rest_is_read(self, tmp_path: Path) -> None:
        work = read(
            tmp_path,
            "SELECT id FROM sales;\n\nSELECT id FROM\n  WHERE ) 1;\n"
            "SELECT id FROM sales WHERE shop = 'open;\nSELECT id FROM sales WHERE price = 1;",
        )
        assert (work.statements, work.problem_count) == (4, 2)
        assert [(problem.file, problem.line) for problem in work.problems] == [("log.sql", 4), ("log.sql", 5)]
        assert all(problem.reason and problem.sql for problem in work.problems)
        assert filters(work) == [("TRUE", 1), ("price = 1", 1)]

    def test_what_asks_for_no_rows_is_counted_by_what_it_is(self, tmp_path: Path) -> None:
        work = read(tmp_path, "SET a = 1;\nDELETE FROM sales WHERE id = 1;\nSET b = 2;\nSELECT id FROM sales")
        assert work.not_queries == {"not a query but SET": 2.0, "not a query but DELETE": 1.0}
        assert (work.statements, work.problem_count) == (4, 0)

    def test_tables_without_a_schema_are_named(self, tmp_path: Path) -> None:
        work = read(tmp_path, "SELECT s.id FROM sales s JOIN other.things o ON o.id = s.id WHERE s.price = 1")
        assert work.others == {"other.things": 1.0}
        assert filters(work) == [("price = 1", 1)]

    def test_a_condition_that_cannot_be_used_is_told_and_the_request_reads_more(self, tmp_path: Path) -> None:
        work = read(tmp_path, "SELECT id FROM sales WHERE price = 1 AND rand() < 0.5 AND id = 2")
        assert filters(work) == [("id = 2 AND price = 1", 1)]
        (reason,) = work.unused_conditions("sales")
        assert "not the row's alone" in reason

    def test_another_dialect_is_read_by_its_name(self, tmp_path: Path) -> None:
        work = read(tmp_path, "SELECT TOP 5 [id] FROM [dbo].[sales] WHERE \"shop\" = N'x'\nGO\n", dialect="tsql")
        assert filters(work) == [("shop = 'x'", 1)]

    def test_a_table_that_has_no_schema_has_no_queries_to_ask_for(self, tmp_path: Path) -> None:
        with pytest.raises(TableNotFound, match=r'no table "sale" in the schemas given\. Did you mean "sales"'):
            read(tmp_path, "SELECT 1").queries("sale")


class TestJsonLines:
    def test_a_count_weighs_everything_that_is_counted(self, tmp_path: Path) -> None:
        work = read(
            tmp_path,
            lines(
                {"sql": "SELECT id FROM sales WHERE price = 1", "count": 40},
                {"sql": "SELECT id FROM sales WHERE price = 2"},
                {"sql": "SELECT id FROM", "count": 3},
                {"sql": "SET x = 1", "count": 2},
            ),
            "log.jsonl",
        )
        assert (work.statements, work.problem_count, work.not_queries) == (46, 3, {"not a query but SET": 2.0})
        assert filters(work) == [("price = 1", 40), ("price = 2", 1)]
        assert [template.weight for template in work.templates] == [41]

    def test_requests_are_put_in_order_of_time_however_it_is_written(self, tmp_path: Path) -> None:
        times = ["2024-01-03T00:00:00+01:00", 1_704_067_200, 1_704_153_600_000, "2024-01-04"]
        work = read(
            tmp_path,
            lines(*({"sql": f"SELECT id FROM sales WHERE price = {n}", "timestamp": t} for n, t in enumerate(times))),
            "log.jsonl",
        )
        arrivals = work.arrivals("sales")
        assert arrivals.query.tolist() == [1, 2, 0, 3]
        assert arrivals.timestamp is not None
        assert arrivals.timestamp.tolist() == [1_704_067_200, 1_704_153_600, 1_704_236_400, 1_704_326_400]

    def test_one_record_without_a_time_leaves_the_order_of_the_lines(self, tmp_path: Path) -> None:
        work = read(
            tmp_path,
            lines(
                {"sql": "SELECT id FROM sales WHERE price = 1", "timestamp": 2},
                {"sql": "SELECT id FROM sales WHERE price = 2", "timestamp": 1},
                {"sql": "SELECT id FROM sales WHERE price = 3"},
            ),
            "log.jsonl",
        )
        assert work.arrivals("sales").query.tolist() == [0, 1, 2]
        assert work.arrivals("sales").timestamp is None

    def test_durations_and_users_are_gathered_by_template(self, tmp_path: Path) -> None:
        work = read(
            tmp_path,
            lines(
                {"sql": "SELECT id FROM sales WHERE price = 1", "duration_ms": 10, "user": "ann"},
                {"sql": "SELECT id FROM sales WHERE price = 2", "duration_ms": 30, "user": "bob"},
                {"sql": "SELECT id FROM sales WHERE price = 3", "user": "ann"},
                {"sql": "SELECT shop FROM sales"},
            ),
            "log.jsonl",
        )
        assert [(one.text, one.weight, one.duration_ms, one.users) for one in work.templates] == [
            ("select id from sales where price = ?", 3.0, 40.0, 2),
            ("select shop from sales", 1.0, None, 0),
        ]

    @pytest.mark.parametrize(
        ("record", "reason"),
        [
            ("not json", "not a JSON object: "),
            ("[1]", "expected a JSON object with the key sql, found list"),
            ({"query": "SELECT 1"}, 'the key "sql" with the text of a statement is missing; keys found: query'),
            ({"sql": 5}, '"sql" must be the text of a statement, found int'),
            ({"sql": "SELECT 1", "count": "many"}, "\"count\" must be a number of at least 0, found 'many'"),
            ({"sql": "SELECT 1", "count": -1}, '"count" must be a number of at least 0, found -1'),
            ({"sql": "SELECT 1", "timestamp": "noon"}, "\"timestamp\" must be ISO 8601 text or a number, found 'noon'"),
            ({"sql": "SELECT 1", "duration_ms": True}, '"duration_ms" must be a number of at least 0, found True'),
        ],
    )
    def test_a_record_of_another_form_is_a_problem_of_its_line(
        self, tmp_path: Path, record: object, reason: str
    ) -> None:
        work = read(tmp_path, lines({"sql": "SELECT id FROM sales"}, "", record), "log.jsonl")
        (problem,) = work.problems
        assert problem.line == 3
        assert problem.reason.startswith(reason)
        assert filters(work) == [("TRUE", 1)]
        assert (work.statements, work.problem_count) == (2, 1), "what is not understood was read as well"

    def test_half_a_letter_is_replaced_by_one_that_can_be_written(self, tmp_path: Path) -> None:
        work = read(tmp_path, r'{"sql": "SELECT id FROM sales WHERE shop = ' "'\\ud800'" '"}', "log.jsonl")
        assert filters(work) == [("shop = '\ufffd'", 1)]

    def test_a_statement_inside_a_record_is_placed_by_the_line_of_the_record(self, tmp_path: Path) -> None:
        work = read(
            tmp_path, lines({"sql": "SELECT 1"}, {"sql": "SELECT id\nFROM sales\nWHERE = 1;SELECT 2"}), "log.jsonl"
        )
        assert [(problem.line, work.statements) for problem in work.problems] == [(2, 3)]

    def test_a_list_of_records_is_read_too(self, tmp_path: Path) -> None:
        work = read(tmp_path, json.dumps([{"sql": "SELECT id FROM sales WHERE price = 1", "count": 2}]), "log.json")
        assert filters(work) == [("price = 1", 2)]


class TestDirectories:
    def test_all_sql_and_json_files_are_read_in_order_and_nothing_else(self, tmp_path: Path) -> None:
        (tmp_path / "deep" / "er").mkdir(parents=True)
        (tmp_path / ".hidden").mkdir()
        (tmp_path / "b.sql").write_text("SELECT id FROM sales WHERE price = 2")
        (tmp_path / "a.jsonl").write_text('{"sql": "SELECT id FROM sales WHERE price = 1"}')
        (tmp_path / "deep" / "er" / "c.txt").write_text("SELECT id FROM sales WHERE price = 3")
        (tmp_path / ".hidden" / "d.sql").write_text("SELECT id FROM sales WHERE price = 4")
        (tmp_path / "notes.md").write_text("SELECT id FROM sales WHERE price = 5")
        assert filters(Workload.read(tmp_path, TABLES)) == [("price = 1", 1), ("price = 2", 1), ("price = 3", 1)]

    def test_several_paths_are_one_workload(self, tmp_path: Path) -> None:
        for name in ("a.sql", "b.sql"):
            (tmp_path / name).write_text("SELECT id FROM sales WHERE price = 1")
        assert filters(Workload.read([tmp_path / "a.sql", tmp_path / "b.sql"], TABLES)) == [("price = 1", 2)]

    def test_a_directory_without_any_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="holds no workload; files that are read end in"):
            Workload.read(tmp_path, TABLES)

    def test_a_workload_needs_a_schema(self, tmp_path: Path) -> None:
        (tmp_path / "a.sql").write_text("SELECT 1")
        with pytest.raises(InvalidInput, match="needs the schema of at least one table"):
            Workload.read(tmp_path, {})


def test_templates_give_the_same_answers_as_reading_each_statement_afresh(tmp_path: Path) -> None:
    """The second statement of a shape is not parsed; constants that decide more than a comparison must be seen."""
    shapes = [
        "SELECT id FROM sales WHERE price > {0} AND shop = '{0}'",
        "SELECT id FROM sales WHERE sold >= DATE '2024-01-0{0}' LIMIT {0}",
        "SELECT id, shop FROM sales WHERE price IN ({0}, {0}, 3) ORDER BY {1}",
        "SELECT id FROM sales WHERE price = {0} OR (shop LIKE 'a{0}%' AND price < 1{0})",
        "SELECT id FROM sales WHERE sold > date '2024-01-01' + interval {0} day",
    ]
    statements = [shape.format(number, 1 + number % 2) for number in range(1, 9) for shape in shapes]
    together = Workload.of(statements, TABLES)
    alone = [filters(Workload.of([statement], TABLES))[0][0] for statement in statements]
    places = together.arrivals("sales").query
    assert [sql(together.queries("sales")[place].filter) for place in places] == alone
    assert len(together.templates) == len(shapes)
