"""A finished dump that is taken up with other rules for the selection of tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.dump_units import dump_of
from unshard.config.rules import BlockAllowRule, TableEntry
from unshard.dump.metadata import HEADER, STATE, DumpResult, read_header
from unshard.dump.unit import DumpUnit
from unshard.errors import DumpError
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer
from unshard.transform.source_rules import TableSelection

ONLY = {
    "block-allow-list": lambda schema, table: TableSelection(
        BlockAllowRule(do_dbs=(schema,), do_tables=(TableEntry(db_name=schema, tbl_name=table),))
    ),
    "-T": lambda schema, table: TableSelection(tables=((schema, table),)),
    "--filter": lambda schema, table: TableSelection(filters=(f"{schema}.{table}",)),
    "online DDL": lambda schema, table: TableSelection(databases=(schema,), trash=("^(other)$",)),
}
"""By the rule, the selection of one table of a schema that has another one, too."""
ALL = {
    "block-allow-list": lambda schema: TableSelection(BlockAllowRule(do_dbs=(schema,))),
    "-T": lambda schema: TableSelection(tables=((schema, "one"), (schema, "other"))),
    "--filter": lambda schema: TableSelection(filters=(f"{schema}.*",)),
    "online DDL": lambda schema: TableSelection(databases=(schema,)),
}
"""The same rule, changed so that it selects the other table, too."""


class Dumps:
    """Dumps of a schema with the tables `one` and `other` into one folder."""

    def __init__(self, server: MariadbServer, schema: str, folder: Path) -> None:
        self.server, self.schema, self.folder = server, schema, folder
        server.run(f"CREATE DATABASE {schema}")
        self.made("one")
        self.made("other")

    def made(self, table: str) -> None:
        self.server.run(f"CREATE TABLE {self.schema}.{table} (id INT PRIMARY KEY)")
        self.server.run(f"INSERT INTO {self.schema}.{table} VALUES (1), (2)")

    def unit(self, selection: TableSelection, **settings: Any) -> DumpUnit:
        return dump_of(self.server, self.folder, self.schema, selection, **settings)

    def run(self, selection: TableSelection, **settings: Any) -> DumpResult:
        return self.unit(selection, **settings).run()

    def refused(self, selection: TableSelection, **settings: Any) -> DumpError:
        with pytest.raises(DumpError) as caught:
            self.run(selection, **settings)
        assert caught.value.code == "DUMP-014"
        return caught.value

    def names(self, result: DumpResult) -> set[str]:
        assert {name.schema for name in result.tables} == {self.schema}
        return {name.table for name in result.tables}

    def becomes_of_an_earlier_version(self) -> None:
        path = self.folder / "dump" / STATE / HEADER
        form = json.loads(path.read_text())
        del form["selection"]
        path.write_text(json.dumps(form))


@pytest.fixture
def dumps(source_server: MariadbServer, schema: str, tmp_path: Path) -> Dumps:
    return Dumps(source_server, schema, tmp_path)


@pytest.mark.server
@pytest.mark.parametrize("rule", ONLY)
def test_a_table_that_the_rules_select_only_now_is_not_left_out(rule: str, dumps: Dumps) -> None:
    """The dump is refused; with its own rules it is taken up, and of another attempt it is made again."""
    only, every = ONLY[rule](dumps.schema, "one"), ALL[rule](dumps.schema)
    first = dumps.run(only)
    assert dumps.names(first) == {"one"}
    refused = dumps.refused(every)
    assert str(TableName(dumps.schema, "other")) in str(refused)
    assert "changed after the dump" in refused.cause
    assert dumps.run(only) == first
    assert dumps.names(dumps.run(every, attempt="next")) == {"one", "other"}


@pytest.mark.server
def test_also_of_a_dump_under_a_lock(dumps: Dumps) -> None:
    only, every = ONLY["-T"](dumps.schema, "one"), ALL["-T"](dumps.schema)
    dumps.run(only, consistency="flush")
    dumps.refused(every, consistency="flush")


@pytest.mark.server
def test_a_table_that_is_made_after_the_dump_is_none_that_it_lacks(dumps: Dumps) -> None:
    """It is in the binlog. Other rules, which select no other of the tables that were there, change nothing."""
    every = ALL["--filter"](dumps.schema)
    first = dumps.run(every)
    dumps.made("later")
    assert dumps.run(every) == first
    assert dumps.run(ALL["block-allow-list"](dumps.schema)) == first
    assert dumps.run(ONLY["-T"](dumps.schema, "one")) == first


@pytest.mark.server
def test_a_dump_of_an_earlier_version_has_all_that_is_selected(dumps: Dumps) -> None:
    """Its rules are not known: a table that it lacks may have been left out."""
    every = ALL["--filter"](dumps.schema)
    first = dumps.run(every)
    dumps.becomes_of_an_earlier_version()
    assert dumps.run(every) == first
    dumps.made("later")
    refused = dumps.refused(every)
    assert str(TableName(dumps.schema, "later")) in str(refused)
    assert "earlier version" in refused.cause
    assert dumps.run(replace(every, filters=(*every.filters, f"!{dumps.schema}.later"))) == first


@pytest.mark.server
def test_an_unfinished_dump_takes_further_tables_and_their_rules(dumps: Dumps) -> None:
    """A table that is made after its end is none that it lacks."""
    assert dumps.unit(ONLY["--filter"](dumps.schema, "one")).run_apart_from(lambda _: None) is None
    header = read_header(dumps.folder / "dump")
    assert header is not None
    assert not header.finished
    every = ALL["--filter"](dumps.schema)
    result = dumps.run(every)
    assert dumps.names(result) == {"one", "other"}
    dumps.made("later")
    assert dumps.run(every) == result


@pytest.mark.server
def test_the_same_rules_ask_no_server(dumps: Dumps, monkeypatch: pytest.MonkeyPatch) -> None:
    every = ALL["block-allow-list"](dumps.schema)
    first = dumps.run(every)
    monkeypatch.setattr("unshard.dump.unit.session", None)
    assert dumps.run(every) == first


def test_the_stored_form_is_read_back() -> None:
    entry = TableEntry(db_name="~^shop", tbl_name="o*")
    listed = BlockAllowRule(do_dbs=("a", "b"), do_tables=(entry,), ignore_dbs=("c",), ignore_tables=(entry, entry))
    rules = TableSelection(listed, True, ("^_(.+)_new$",), ("^_(.+)_old$",), ("d",), (("d", "t"),), ("d.*", "!d.u"))
    for selection in (TableSelection(), rules):
        form = json.loads(json.dumps(selection.to_dict()))
        assert form == selection.to_dict()
        assert TableSelection.from_dict(form) == selection
