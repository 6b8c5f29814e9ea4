"""A task whose records are dropped, on the machine that has its dumps: the dumps go before the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from support.task_runs import TaskFiles
from unshard.config.files import load_source, load_task
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.dump.metadata import STATE
from unshard.load.checkpoint import LoadTables
from unshard.mysql.connection import session
from unshard.operate import reset
from unshard.operate.reset import forget_copy, look, undo
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


def reset_copy(configs: Sequence[SubtaskConfig]) -> None:
    undo(configs, look(configs))


class Copy:
    """A task of one source, of which a dump and a record are there."""

    def __init__(self, source: MariadbServer, target: MariadbServer, schema: str, folder: Path, mode: str) -> None:
        keys = {"task-mode": mode}
        files = TaskFiles(folder, schema, {"s1": source}, target, (schema,), keys).write()
        sources = [load_source(path) for path in files.source_paths]
        self.configs = plan_subtasks(load_task(files.task_path), sources)
        self.dump = Path(self.configs[0].loader.directory)
        (self.dump / STATE).mkdir(parents=True)
        (self.dump / "metadata").write_text("of a dump")
        self.target, self.meta = target, files.meta
        with session(target.endpoint, "target") as connection:
            LoadTables(files.meta, files.name, "s1").create(connection)

    @property
    def recorded(self) -> bool:
        return bool(self.target.query(f"SHOW TABLES FROM {self.meta} LIKE '%load_chunk'"))


@pytest.mark.parametrize("forgets", [forget_copy, reset_copy])
@pytest.mark.parametrize(("mode", "stays"), [("full", False), ("all", False), ("dump", False), ("load", True)])
def test_only_the_dump_of_another_task_stays(
    forgets: Callable[[Sequence[SubtaskConfig]], object],
    mode: str,
    stays: bool,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    copy = Copy(source_server, target_server, schema, tmp_path, mode)
    assert copy.recorded
    forgets(copy.configs)
    assert copy.dump.exists() == stays
    assert not copy.recorded


@pytest.mark.parametrize("forgets", [forget_copy, reset_copy])
def test_the_dumps_are_removed_before_the_records(
    forgets: Callable[[Sequence[SubtaskConfig]], object],
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy = Copy(source_server, target_server, schema, tmp_path, "full")

    def dies(*of: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(reset, "forget_task", dies)
    with pytest.raises(ConnectionError):
        forgets(copy.configs)
    assert copy.recorded
    assert not copy.dump.exists()
