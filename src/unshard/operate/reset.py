"""`--reset`: undo what a task's copy did, as far as its records tell, so that its next start begins from nothing.

The records of the task go first, then each table and its own line of the record of filled tables. A reset that dies on
the way is ended by the next one.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unshard.config.subtask import SubtaskConfig
from unshard.dump.metadata import STATE
from unshard.model.table import TableName
from unshard.mysql.connection import rows, session
from unshard.mysql.endpoint import to_endpoint
from unshard.target.filled import FilledTables, counted, with_rows
from unshard.target.meta import forget_task


@dataclass(frozen=True, slots=True)
class Undone:
    """What a reset does. `drops` the task has created, `empties` it found empty, `keeps` held rows before it began.

    Each goes with its number of rows in words. `dumps` are folders of dumps.
    """

    task: str
    meta_schema: str
    drops: tuple[tuple[TableName, str], ...]
    empties: tuple[tuple[TableName, str], ...]
    keeps: tuple[tuple[TableName, str], ...]
    dumps: tuple[Path, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """What a reset does, in a line for each table and folder."""
        return (
            *(f"drops {name} ({count}), which this task has made" for name, count in self.drops),
            *(f"empties {name} ({count}), which was empty when this task began" for name, count in self.empties),
            *(
                f"keeps {name} ({count}), which held rows before this task began: delete those of the task by hand"
                for name, count in self.keeps
            ),
            *(f"removes the dump in {folder}" for folder in self.dumps),
            f"drops the other records of task {self.task} in {self.meta_schema}",
        )


def look(configs: Sequence[SubtaskConfig], *, dumps: bool = True) -> Undone:
    """What a reset of the task would do; `configs` are all of its subtasks. Changes nothing. Raises TargetError.

    `dumps`: whether the folders of the dumps are on this machine. Those of a cluster are on its workers, which make a
    dump of another attempt again (`SubtaskConfig.attempt`).
    """
    first = configs[0]
    with session(to_endpoint(first.target), "target") as connection:
        records = FilledTables(first.meta_schema, first.name).read(connection)
        filled = frozenset(with_rows(connection, sorted(records)))
        told = {name: counted(connection, name) if name in filled else "no row" for name in sorted(records)}
    return Undone(
        first.name,
        first.meta_schema,
        tuple((name, told[name]) for name in told if records[name].made),
        tuple((name, told[name]) for name in told if not records[name].made and not records[name].had_rows),
        tuple((name, told[name]) for name in told if not records[name].made and records[name].had_rows),
        tuple(folder for config in configs if dumps and (folder := _dump_of(config)) is not None),
    )


def undo(configs: Sequence[SubtaskConfig], undone: Undone) -> None:
    """Do it. Another process that runs the task all the same can write nothing from then on. Raises TargetError."""
    first = configs[0]
    filled = FilledTables(first.meta_schema, first.name)
    with session(to_endpoint(first.target), "target") as connection:
        forget_task(connection, first.meta_schema, first.name)
        rows(connection, "SET SESSION foreign_key_checks = 0")
        for name, _ in undone.drops:
            rows(connection, f"DROP TABLE IF EXISTS {name.quoted}")
            filled.note_gone(connection, name)
        for name, count in undone.empties:
            if count != "no row":
                rows(connection, f"TRUNCATE TABLE {name.quoted}")
            filled.note_gone(connection, name)
        filled.note_earlier(connection)
    for folder in undone.dumps:
        shutil.rmtree(folder)


def _dump_of(config: SubtaskConfig) -> Path | None:
    """The folder of a dump that the task makes itself, where there is one; mode `load` reads that of another."""
    folder = Path(config.loader.directory)
    return folder if config.mode != "load" and (folder / STATE).is_dir() else None
