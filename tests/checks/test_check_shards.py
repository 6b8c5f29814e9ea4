"""Tables that merge: structures over two sources by route, keys that clash, the mending of both."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.checked_tasks import found, report_of, statement, with_keys
from support.task_runs import TaskFiles
from support.vanishing_tables import Vanishing
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.dump.metadata import DumpHeader, write_header
from unshard.model.position import Location, Position
from unshard.mysql import structure
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server
SAME = "sharding table "
COUNTED = "auto-increment key checking"


@pytest.fixture
def merge(
    changed_source: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> TaskFiles:
    """Two sources with a schema each; all `o_*` merge."""
    for server in (changed_source, second_source):
        server.run(f"CREATE DATABASE {schema}")
    route = {"schema-pattern": schema, "table-pattern": "o_*", "target-schema": schema, "target-table": "o"}
    return TaskFiles(
        tmp_path,
        schema,
        {"s1": changed_source, "s2": second_source},
        target_server,
        (schema,),
        keys={"routes": {"r": route}},
        instance={"route-rules": ["r"]},
    )


def create(files: TaskFiles, source: str, table: str, columns: str) -> None:
    files.sources[source].run(f"CREATE TABLE {files.schemas[0]}.{table} ({columns})")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("id BIGINT PRIMARY KEY", "id BIGINT PRIMARY KEY, added VARCHAR(9) NOT NULL DEFAULT 'a, b' COMMENT 'it''s'"),
        ("id BIGINT PRIMARY KEY, v VARCHAR(10)", "id BIGINT PRIMARY KEY, v VARCHAR(30) DEFAULT 'x'"),
        ("id INT PRIMARY KEY, a INT", "id BIGINT PRIMARY KEY, b INT"),
        ("id INT PRIMARY KEY, e ENUM('a')", "id INT PRIMARY KEY, e ENUM('a', 'b')"),
        ("id INT PRIMARY KEY, v TEXT CHARACTER SET latin1", "id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET utf8mb4"),
        ("id INT PRIMARY KEY, `a``b` INT NOT NULL", "id INT PRIMARY KEY, `a``b` INT UNSIGNED NULL"),
    ],
)
def test_structures_that_differ(merge: TaskFiles, one: str, other: str) -> None:
    create(merge, "s1", "o_1", one)
    create(merge, "s1", "o_2", one)
    create(merge, "s2", "o_1", other)
    lacks = found(merge, SAME)
    assert {finding.severity for finding in lacks} == {"fail"}
    for finding in lacks:
        source, _, _ = finding.self.partition(" ")
        merge.sources[source].run(statement(finding))
    assert found(merge, SAME) == []
    assert merge.sources["s1"].query("SELECT @@warning_count") == [(0,)]


def test_other_orders_and_shown_widths_are_the_same(merge: TaskFiles) -> None:
    create(merge, "s1", "o_1", "id INT(3) PRIMARY KEY, v VARCHAR(10)")
    create(merge, "s2", "o_1", "v VARCHAR(10), id INT(11) PRIMARY KEY")
    assert found(merge, SAME) == []


def test_a_target_that_takes_them_all_makes_it_a_warning(merge: TaskFiles, schema: str) -> None:
    create(merge, "s1", "o_1", "id INT PRIMARY KEY")
    create(merge, "s2", "o_1", "id BIGINT PRIMARY KEY, v VARCHAR(10)")
    merge.target.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.o (id BIGINT PRIMARY KEY, v VARCHAR(10))")
    assert {finding.severity for finding in found(merge, SAME)} == {"warn"}
    assert {finding.severity for finding in found(with_keys(merge, shard_mode="pessimistic"), SAME)} == {"fail"}


def test_shards_that_differ_while_they_are_copied_make_it_a_warning(merge: TaskFiles, schema: str) -> None:
    """A start in the middle of a copy: a DDL may be on some of them by now, which the copy looks after."""
    create(merge, "s1", "o_1", "id INT PRIMARY KEY")
    create(merge, "s2", "o_1", "id INT PRIMARY KEY, v VARCHAR(10)")
    files = with_keys(merge, shard_mode="pessimistic").write()
    assert {finding.severity for finding in found(files, SAME)} == {"fail"}
    configs = plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths])
    header = DumpHeader("run", "s1", "lock-free", {}, Location(Position("bin.000001")), (), {}, 0, "now")
    folder = Path(configs[0].loader.directory)
    (folder / ".unshard").mkdir(parents=True)
    write_header(folder, header)
    assert {finding.severity for finding in found(files, SAME)} == {"warn"}


def test_in_optimistic_mode_the_join_of_shards_is_told(merge: TaskFiles) -> None:
    files = with_keys(merge, shard_mode="optimistic").write()
    create(merge, "s1", "o_1", "id INT PRIMARY KEY")
    create(merge, "s2", "o_1", "id INT PRIMARY KEY")
    assert found(files, SAME) == []
    create(merge, "s2", "o_2", "id BIGINT PRIMARY KEY, v VARCHAR(10) NOT NULL DEFAULT 'x'")
    (finding,) = found(files, SAME)
    assert finding.severity == "warn"
    assert "rows of tables without v get 'x'" in finding.short_error
    create(merge, "s2", "o_3", "id INT PRIMARY KEY, v INT")
    fault, joined = found(files, SAME)
    assert (fault.severity, joined.severity) == ("fail", "warn")
    assert re.search(r"rows of \S+o_3\S* of s2 and of \S+o_2\S* of s2: column v is .*int", fault.short_error)


def test_tables_that_do_not_merge_may_differ(merge: TaskFiles) -> None:
    create(merge, "s1", "o_1", "id INT PRIMARY KEY")
    create(merge, "s2", "p_1", "id BIGINT PRIMARY KEY, v VARCHAR(10)")
    names = [result.name for result in report_of(merge).results]
    assert not [name for name in names if name.startswith((SAME, COUNTED))]


COLUMNS = "id BIGINT AUTO_INCREMENT PRIMARY KEY"


def test_counted_keys(merge: TaskFiles, schema: str) -> None:
    create(merge, "s1", "o_1", COLUMNS)
    create(merge, "s2", "o_1", COLUMNS)
    lacks = found(merge, COUNTED)
    assert [finding.severity for finding in lacks] == ["warn", "warn"]
    for number, finding in enumerate(lacks, 1):
        assert f"column-mappings: {{ids-of-s{number}: " in finding.instruction
        assert f'arguments: ["{number}", ' in finding.instruction, "each source's own, as printed"
    form = {"schema-pattern": schema, "source-column": "id", "target-column": "id", "expression": "partition id"}
    mappings = {
        f"m{number}": {**form, "table-pattern": "o_*", "arguments": [str(number), "", "o_"]} for number in (1, 2)
    }
    mapped = with_keys(merge, column_mappings=mappings)
    mapped = replace(mapped, instances={f"s{n}": {"column-mapping-rules": [f"m{n}"]} for n in (1, 2)})
    assert found(mapped, COUNTED) == []
    same = with_keys(merge, column_mappings={"m1": mappings["m1"]})
    (clash,) = found(replace(same, instance={**same.instance, "column-mapping-rules": ["m1"]}), COUNTED)
    assert "the same part" in clash.short_error


def test_counted_keys_that_the_target_tells_apart(merge: TaskFiles, schema: str) -> None:
    create(merge, "s1", "o_1", COLUMNS)
    create(merge, "s2", "o_1", COLUMNS)
    merge.target.run(f"CREATE DATABASE {schema}")
    merge.target.run(f"CREATE TABLE {schema}.o (id BIGINT, c VARCHAR(9) DEFAULT 'x', PRIMARY KEY (id, c))")
    assert found(merge, COUNTED) == []


def test_a_column_that_is_filled_from_names(merge: TaskFiles, schema: str) -> None:
    create(merge, "s1", "o_1", COLUMNS)
    create(merge, "s2", "o_1", COLUMNS)
    route = {**merge.keys["routes"]["r"], "extract-source": {"source-regexp": "(.*)", "target-column": "origin"}}
    own = with_keys(merge, routes={"r": route})
    lacks = found(own, "table structure compatibility check")
    assert {finding.severity for finding in lacks} == {"fail"}
    merge.target.run(*lacks[0].instruction.removesuffix(";").split("; "))
    assert found(own, "table structure compatibility check") == []
    assert found(own, COUNTED) == []


@pytest.mark.parametrize(
    "keys",
    [{}, {"shard-mode": "pessimistic"}, {"shard-mode": "optimistic"}, {"extract-source": {"source-regexp": "(.*)"}}],
)
@pytest.mark.parametrize("change", ["DROP TABLE {0}.o_2", "RENAME TABLE {0}.o_2 TO {0}.away"])
def test_a_table_that_goes_while_it_is_looked_at(
    keys: dict[str, Any], change: str, merge: TaskFiles, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(merge, "s1", "o_1", "id BIGINT PRIMARY KEY")
    create(merge, "s2", "o_2", "id BIGINT PRIMARY KEY, v VARCHAR(9) NOT NULL")
    if "extract-source" in keys:
        merge.sources["s1"].run(f"DROP TABLE {schema}.o_1", f"CREATE TABLE {schema}.other (id INT PRIMARY KEY)")
        route = {**merge.keys["routes"]["r"], "extract-source": {**keys["extract-source"], "target-column": "origin"}}
        keys = {"routes": {"r": route}}
    own = with_keys(merge, **keys)
    act = partial(merge.sources["s2"].run, change.format(schema))
    gone = Vanishing("SHOW CREATE TABLE", act).before(monkeypatch, structure, "rows")
    assert report_of(own).passed
    assert gone.done


def test_keys_that_are_not_counted(merge: TaskFiles) -> None:
    create(merge, "s1", "o_1", "id BIGINT PRIMARY KEY")
    create(merge, "s2", "o_1", "id BIGINT PRIMARY KEY, n INT AUTO_INCREMENT, KEY (n)")
    assert found(merge, COUNTED) == []


def questions(server: ThrowawayServer) -> int:
    """How many statements it has been asked, so far."""
    ((_, asked),) = server.query("SHOW GLOBAL STATUS LIKE 'Questions'")
    return int(asked)


def test_many_tables_are_asked_for_together(merge: TaskFiles, schema: str) -> None:
    source, asked = merge.sources["s1"], []
    for numbers in (range(2), range(2, 300)):
        source.run(*(f"CREATE TABLE {schema}.o_{n} (id INT PRIMARY KEY) ENGINE = MEMORY" for n in numbers))
        before = questions(source)
        report = report_of(merge)
        asked.append(questions(source) - before)
    assert asked[1] < asked[0] + 10, "a connection that ends counts too, in its own time"
    assert [r.state for r in report.results if r.name == f"{SAME}{schema}.o consistency checking"] == ["success"]
    source.run(f"DROP DATABASE {schema}")
