"""`--reset` and `--remove-meta`: undo a task's copy, or only drop its records, so that its next start begins anew.

The task's dumps are removed first: without its records, a start would load an old dump. Then its records are dropped,
then, by a reset, each table together with its row in the record of filled tables. If the process dies in between, the
same command completes it; any other start is refused where rows were loaded (LOAD-008, LOAD-020, LOAD-025).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unshard.config.subtask import SubtaskConfig
from unshard.dump.durable import disk
from unshard.dump.metadata import STATE
from unshard.model.table import TableName
from unshard.mysql.connection import rows, session
from unshard.mysql.endpoint import to_endpoint
from unshard.target.filled import FilledTables, counted, empty_table, with_rows
from unshard.target.forget import Permit, forget_task, freely


@dataclass(frozen=True, slots=True)
class Undone:
    """The effect of a reset of a task on each table and folder.

    `drops` are tables that the task has created, `empties` tables that were empty when it began, `keeps` tables that
    had rows before it began. Each has its number of rows in words. `dumps` are folders of dumps.
    """

    task: str
    meta_schema: str
    drops: tuple[tuple[TableName, str], ...]
    empties: tuple[tuple[TableName, str], ...]
    keeps: tuple[tuple[TableName, str], ...]
    dumps: tuple[Path, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """Effect of a reset in words: one line for each table and folder."""
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
    """Return the effect that a reset of the task would have. Changes nothing. Raises TargetError.

    `configs` are all of the task's subtasks. `dumps`: whether the folders of the dumps are on this machine. In a
    cluster they are on the workers, which repeat a dump of another attempt (`SubtaskConfig.attempt`).
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
        _dumps_of(configs) if dumps else (),
    )


def undo(configs: Sequence[SubtaskConfig], undone: Undone, permit: Permit = freely) -> None:
    """Run the reset. If another process runs the task nevertheless, it can't write from then on.

    Raises TargetError, DumpError DUMP-009 for a folder that can't be removed, and what `permit` raises.
    """
    first = configs[0]
    filled = FilledTables(first.meta_schema, first.name)
    with session(to_endpoint(first.target), "target") as connection:
        _remove(undone.dumps)
        forget_task(connection, first.meta_schema, first.name, permit)
        rows(connection, "SET SESSION foreign_key_checks = 0")
        for name, _ in undone.drops:
            permit()
            rows(connection, f"DROP TABLE IF EXISTS {name.quoted}")
            filled.note_gone(connection, name)
        for name, count in undone.empties:
            permit()
            if count != "no row":
                empty_table(connection, name)
            filled.note_gone(connection, name)
        forget_task(connection, first.meta_schema, first.name, permit)  # the keys of tables that are gone


def forget_copy(configs: Sequence[SubtaskConfig]) -> tuple[Path, ...]:
    """Remove the task's dumps from this machine and drop its records; return the folders. The rows stay.

    `configs` are all of the task's subtasks. Raises TargetError, and DumpError DUMP-009 for a folder that can't be
    removed.
    """
    first, folders = configs[0], _dumps_of(configs)
    with session(to_endpoint(first.target), "target") as connection:
        _remove(folders)
        forget_task(connection, first.meta_schema, first.name)
    return folders


def _remove(folders: Sequence[Path]) -> None:
    for folder in folders:
        with disk(folder):
            shutil.rmtree(folder)


def _dumps_of(configs: Sequence[SubtaskConfig]) -> tuple[Path, ...]:
    return tuple(folder for config in configs if (folder := _dump_of(config)) is not None)


def _dump_of(config: SubtaskConfig) -> Path | None:
    """Return the folder of the task's own dump, if there is one.

    Mode `load` has none: it reads the dump of another task.
    """
    folder = Path(config.loader.directory)
    return folder if config.mode != "load" and (folder / STATE).is_dir() else None
