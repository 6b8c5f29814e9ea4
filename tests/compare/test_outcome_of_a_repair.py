"""The outcome of a repair: that of the comparison before it, with the repaired tables as they are now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.comparisons import compared, repaired
from support.task_runs import TaskFiles
from unshard.compare.result import CompareVerdict
from unshard.errors import SourceError

pytestmark = pytest.mark.server


def test_a_source_that_was_not_read_is_still_told(files: TaskFiles, schema: str) -> None:
    """Other tables of it were not compared, and the repair compares only those that it has repaired."""
    for number, server in enumerate((files.sources["s1"], files.target)):
        made = (f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)" for name in "tu")
        server.run(f"USE {schema}", *made, f"INSERT INTO t VALUES (1, {number})", "INSERT INTO u VALUES (1, 1)")
    found = compared(files, None)
    away = SourceError("SOURCE-001", values={"host": "127.0.0.1", "port": 1, "user": "root"})
    assert (found.exit_code, found.errors) == (1, ())
    after = repaired(files, replace(found, errors=(away,)))
    verdicts = {one.name.table: one.verdict for one in after.tables}
    assert verdicts == {"t": CompareVerdict.EQUAL, "u": CompareVerdict.EQUAL}
    assert [error.code for error in after.errors] == ["SOURCE-001"]
    assert after.exit_code == 2
    assert after.places[0].begin == found.places[0].begin
    assert f"{schema}.t: repaired 0 extra, 1 changed, 0 missing" in after.notes
