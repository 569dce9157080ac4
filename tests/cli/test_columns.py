"""The commands for wide tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from skipstone.cli import app
from skipstone.layout.columns.files import read_sizes

TOPICS, EACH = 4, 6
"""Columns t0_0 ... t3_5: queries read most of one topic, whose columns are scattered over the schema."""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["columns", *map(str, arguments)])


def said(*arguments: object) -> Any:
    """What a command prints as JSON; it must succeed."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments: object) -> str:
    """What a command says that fails because of what it was given."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    return result.stderr.strip()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory with sizes in S.tsv and queries in W.tsv."""
    rng = np.random.default_rng(5)
    names = [f"t{topic}_{number}" for number in range(EACH) for topic in range(TOPICS)]
    sizes = rng.lognormal(9, 2, len(names))
    (tmp_path / "S.tsv").write_text("".join(f"{n}\tint\t{s}\n" for n, s in zip(names, sizes, strict=True)))
    lines = []
    for query in range(16):
        chosen = rng.choice(EACH, 4, replace=False)
        columns = [f"t{query % TOPICS}_{number}" for number in chosen] + [f"t{(query + 1) % TOPICS}_0"]
        lines.append(f"q{query}\t{1 + query % 3}\t{','.join(columns)}\n")
    (tmp_path / "W.tsv").write_text("".join(lines))
    return tmp_path


def ordered(files: Path) -> Path:
    said("order", "--schema", files / "S.tsv", "--workload", files / "W.tsv", "--moves", 400, "--out", files / "O.tsv")
    return files / "O.tsv"


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    """A Parquet table of three files and six row groups."""
    directory = tmp_path / "data"
    directory.mkdir()
    for number in range(3):
        table = pa.table(
            {
                "id": pa.array(range(number * 100, number * 100 + 100), pa.int64()),
                "note": [f"note {k}" for k in range(100)],
                "pair": [{"x": k, "y": float(k)} for k in range(100)],
            }
        )
        pq.write_table(table, directory / f"part-{number}.parquet", row_group_size=50)
    return directory


def test_an_order_is_found_written_and_costs_what_was_said(files: Path) -> None:
    out = files / "O.tsv"
    found = said("order", "--schema", files / "S.tsv", "--workload", files / "W.tsv", "--moves", 400, "--out", out)
    assert found["final_cost"] < 0.5 * found["initial_cost"]
    assert {"initial_cost", "final_cost", "seconds", "algorithm", "seed"} <= found.keys()
    assert (found["algorithm"], found["seed"], found["stopped"]) == ("sweep", 0, False)
    before, after = read_sizes(files / "S.tsv"), read_sizes(out)
    assert set(after.columns) == set(before.columns)
    for schema, key in (("S.tsv", "initial_cost"), ("O.tsv", "final_cost")):
        cost = said("cost", "--schema", files / schema, "--workload", files / "W.tsv")["cost"]
        assert cost == pytest.approx(found[key])


@pytest.mark.parametrize("algorithm", ["default", "naive", "autopart-c", "genetic", "scoa"])
def test_every_algorithm_answers_to_its_name(files: Path, algorithm: str) -> None:
    options = ("--algorithm", algorithm, "--moves", 50, "--seed", 3, "--seek", "object-store:gap=4096")
    found = said(
        "order", "--schema", files / "S.tsv", "--workload", files / "W.tsv", *options, "--out", files / "O.tsv"
    )
    assert (found["algorithm"], found["seed"], found["seek"]) == (algorithm, 3, "object-store:gap=4096")


def test_a_seed_and_moves_give_one_file(files: Path) -> None:
    texts = set()
    for name in ("one.tsv", "two.tsv"):
        said(
            "order", "--schema", files / "S.tsv", "--workload", files / "W.tsv", "--moves", 200, "--seed", 7,
            "--out", files / name,
        )  # fmt: skip
        texts.add((files / name).read_text())
    assert len(texts) == 1


def test_duplicates_stay_within_their_headroom_and_name_their_source(files: Path) -> None:
    order, out = ordered(files), files / "D.tsv"
    found = said(
        "duplicate", "--schema", order, "--workload", files / "W.tsv", "--headroom", 0.2, "--moves", 3000, "--out", out
    )
    stored = read_sizes(out)
    assert found["final_cost"] < found["initial_cost"]
    assert found["duplicates"] == len(stored.layout.duplicates) > 0
    assert found["duplicate_bytes"] == pytest.approx(stored.duplicate_bytes)
    assert stored.duplicate_bytes <= 0.2 * stored.total_bytes
    assert {column.source for column in stored.layout.duplicates} <= set(stored.layout.columns)
    cost = said("cost", "--schema", out, "--workload", files / "W.tsv")["cost"]
    assert cost == pytest.approx(found["final_cost"])


def test_a_redirect_reads_each_column_once_and_names_an_unknown_one(files: Path) -> None:
    out = files / "D.tsv"
    arguments = ("--workload", files / "W.tsv")
    said("duplicate", "--schema", ordered(files), *arguments, "--headroom", 0.2, "--moves", 3000, "--out", out)
    for asked in ("t0_1,t1_0", "t3_5", "t0_0,t1_1,t2_2,t3_3"):
        found = said("redirect", "--layout", out, *arguments, "--columns", asked)
        assert sorted(one["column"] for one in found["reads"]) == asked.split(",")
    text = run("redirect", "--layout", out, *arguments, "--columns", "t3_5").stdout
    assert text.split("\t")[0].startswith("t3_5")
    assert refused("redirect", "--layout", out, *arguments, "--columns", "t0_1,t9_9").startswith(
        'ColumnNotFound: no column "t9_9" in the layout.'
    )
    assert 'in "t0_1,,t1_0" one is empty' in refused("redirect", "--layout", out, *arguments, "--columns", "t0_1,,t1_0")


@pytest.mark.parametrize(
    ("sizes", "queries", "complaint"),
    [
        ("a\tint\t0\n", "q\t1\ta\n", 'S.tsv, line 1: column "a" has a size of 0 bytes; a size is a number above 0'),
        ("a\tint\t5\nb\tint\t-1\n", "q\t1\ta\n", 'S.tsv, line 2: column "b" has a size of -1 bytes'),
        ("a\tint\t5\n", "q\t1\ta\nr\t1\tb\n", "W.tsv, line 2). It has: a"),
        ("a\tint\t5\n", "q\t1\t\n", 'W.tsv, line 1: query "q" reads no column'),
        ("a\tint\t5\n", "q\t1\ta,a\n", 'W.tsv, line 1: query "q" names column "a" twice'),
        ("a\tint\t5\na\tint\t5\n", "q\t1\ta\n", 'S.tsv, line 2: column "a" was given in line 1 already'),
        ("a\tint\t5\n", "q\t1\n", "W.tsv, line 1: 2 fields"),
        ("a\tint\t5\na2\tint\t5\tz\n", "q\t1\ta\n", "for the duplicate in line 2"),
    ],
)
def test_mistakes_in_files_are_named_with_file_and_line(
    tmp_path: Path, sizes: str, queries: str, complaint: str
) -> None:
    (tmp_path / "S.tsv").write_text(sizes)
    (tmp_path / "W.tsv").write_text(queries)
    message = refused(
        "order", "--schema", tmp_path / "S.tsv", "--workload", tmp_path / "W.tsv", "--out", tmp_path / "O.tsv"
    )
    assert complaint in message
    assert not (tmp_path / "O.tsv").exists()


@pytest.mark.parametrize("command", [("order",), ("duplicate", "--headroom", 0.1)])
def test_a_file_that_cannot_be_written_is_refused_before_the_search(
    files: Path, command: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_search(*_: object, **__: object) -> None:
        raise AssertionError("the search began")

    monkeypatch.setattr("skipstone.cli.columns.propose_order", no_search)
    monkeypatch.setattr("skipstone.cli.columns.propose_duplicates", no_search)
    arguments = (*command, "--schema", files / "S.tsv", "--workload", files / "W.tsv", "--out")
    assert f"there is no directory {files / 'nowhere'}" in refused(*arguments, files / "nowhere" / "O.tsv")
    assert "it is a directory" in refused(*arguments, files)


def test_an_unknown_algorithm_or_profile_is_answered_with_those_there_are(files: Path) -> None:
    base = ("order", "--schema", files / "S.tsv", "--workload", files / "W.tsv", "--out", files / "O.tsv")
    assert 'Did you mean "scoa"?' in refused(*base, "--algorithm", "soca")
    assert "There are linear, object-store, power" in refused(*base, "--seek", "disk")
    assert "a search of 0 seconds finds nothing" in refused(*base, "--seconds", 0)


def test_a_workload_may_be_sql(files: Path) -> None:
    (files / "q.sql").write_text(
        "SELECT t0_0, sum(t0_1) FROM wide WHERE t0_2 > 5 GROUP BY t0_0;\n"
        "SELECT count(*) FROM wide;\nSELECT t9 FROM wide;\n"
    )
    arguments = ("--schema", files / "S.tsv", "--workload", files / "q.sql")
    found = said("order", *arguments, "--moves", 50, "--out", files / "O.tsv")
    assert found["queries"] == 1
    assert [problem.partition("q.sql:3")[1] for problem in found["problems"]] == ["q.sql:3"]
    assert found["final_cost"] == 0.0 < found["initial_cost"]
    (files / "q.sql").write_text("SELECT t0_0 FROM wide; SELECT x FROM other;")
    assert "say with --table which" in refused("cost", *arguments)
    assert said("cost", *arguments, "--table", "wide")["cost"] == 0.0


def test_sizes_come_from_the_footers_and_an_order_is_applied(parquet: Path, tmp_path: Path) -> None:
    sizes, layout, out = tmp_path / "S.tsv", tmp_path / "L.tsv", tmp_path / "ordered"
    said("sizes", parquet, "--out", sizes)
    found = read_sizes(sizes)
    assert [(column.name, column.type) for column in found.columns] == [
        ("id", "bigint"), ("note", "string"), ("pair", "struct<x:bigint,y:double>"),
    ]  # fmt: skip
    footers = [pq.read_metadata(file) for file in sorted(parquet.iterdir())]
    groups = [footer.row_group(number) for footer in footers for number in range(2)]
    leaves = np.array([[group.column(leaf).total_compressed_size for leaf in range(4)] for group in groups]).mean(0)
    expected = [leaves[0], leaves[1], leaves[2] + leaves[3]]
    assert [column.chunk_bytes for column in found.columns] == pytest.approx(expected)
    lines = sizes.read_text().splitlines()
    layout.write_text("\n".join([lines[2], lines[1], lines[0], f"id__copy1\tbigint\t{expected[0]}\tid"]) + "\n")
    done = said("apply", parquet, "--layout", layout, "--out", out)
    assert (done["files"], done["row_groups"], done["rows"], done["duplicates"]) == (3, 6, 300, 1)
    for file in sorted(parquet.iterdir()):
        before, after = pq.read_table(file), pq.read_table(out / file.name)
        assert after.schema.names == ["pair", "note", "id", "id__copy1"]
        assert after.select(before.schema.names).equals(before)
        assert after["id__copy1"].equals(before["id"])
    assert "is not empty" in refused("apply", parquet, "--layout", layout, "--out", out)


def test_sizes_of_no_parquet_are_refused(tmp_path: Path) -> None:
    assert "no Parquet file there" in refused("sizes", tmp_path, "--out", tmp_path / "S.tsv")


def test_a_measured_profile_is_one_to_search_by(files: Path) -> None:
    profile = files / "P.tsv"
    found = said("seek", files, "--scratch-bytes", 400_000, "--repeats", 2, "--out", profile)
    assert not list(files.glob(".*.seek")), "The scratch file is gone"
    gaps = [gap for gap, _ in found["points"]]
    assert gaps[0] == 4096
    assert gaps == sorted(gaps)
    assert len(gaps) > 5
    arguments = ("--schema", files / "S.tsv", "--workload", files / "W.tsv", "--seek", profile)
    assert said("order", *arguments, "--moves", 50, "--out", files / "O.tsv")["seek"] == str(profile)
    assert "no file or directory" in refused("seek", files / "nowhere", "--out", profile)
    assert "too small to measure seeks in" in refused("seek", files / "S.tsv", "--out", profile)
