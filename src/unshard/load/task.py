"""The Spark task of the load: some data files, over one connection or a few, each file piece by piece."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from unshard.dump.read import dumped_columns
from unshard.errors import LoadError, Where, enclose
from unshard.load.checkpoint import FileState, LoadTables
from unshard.load.contents import DataFile
from unshard.load.file_settings import FileSettings
from unshard.load.pieces import LoadPiece, SqlText, check_whole, open_sql, parquet_pieces, sql_pieces
from unshard.load.sql_dump import Rewriter, literals_of
from unshard.load.structure import Way
from unshard.load.write import VERBS, Destination, OnDuplicate, Writer
from unshard.mysql.connection import Endpoint
from unshard.target.rate_limiter import RateLimiter

_ALIKE = frozenset({"binary", "ascii", "utf8", "utf8mb3", "utf8mb4"})
"""Character sets whose bytes mean the same in utf8mb4."""
_WIDE = frozenset({"ucs2", "utf16", "utf16le", "utf32"})


@dataclass(frozen=True, slots=True)
class FileWork:
    """One file to load, with the rules by which its rows are written."""

    file: DataFile
    way: Way


@dataclass(frozen=True, slots=True)
class LoadWork:
    """The files that one Spark task loads, and the settings for it.

    Args:
        tables: the meta tables, which have the files' checkpoints.
        epoch: that of the load's claim.
        directory: the dump's folder.
        gate: the limits of the target.
        into_tidb: whether the target is a TiDB.
        in_utc: values of TIMESTAMP are in UTC where the files don't say it.
        escape_backslash: as `load.backslashes.escaped`.
    """

    endpoint: Endpoint
    tables: LoadTables
    epoch: int
    on_duplicate: OnDuplicate
    directory: Path
    files: tuple[FileWork, ...]
    gate: RateLimiter | None = None
    connections: int = 1
    into_tidb: bool = False
    in_utc: bool = False
    escape_backslash: bool | None = True


def load_files(payload: bytes) -> bytes:
    """Spark task: load the files of a pickled LoadWork; the number of files as outcome.

    Safe to run again and at the same time as another attempt: it skips the pieces that another has committed.
    """
    work: LoadWork = pickle.loads(payload)
    return enclose(lambda: _load_files(work))


def _load_files(work: LoadWork) -> int:
    """Let each connection take the next file that none has. The first error ends the others after their piece."""
    ended = Event()
    waiting = iter(work.files)  # threads may call `next` on it at once

    def load() -> None:
        writer = Writer(work.endpoint, work.tables, work.epoch, work.on_duplicate, work.gate)
        try:
            for file in waiting:
                _load_file(work, file, writer, ended)
        except BaseException:
            ended.set()
            raise
        finally:
            writer.close()

    if work.connections == 1:
        load()
        return len(work.files)
    with ThreadPoolExecutor(work.connections, "load") as threads:
        for one in [threads.submit(load) for _ in range(work.connections)]:
            one.result()
    return len(work.files)


def _load_file(work: LoadWork, file: FileWork, writer: Writer, ended: Event) -> None:
    """Load the file, unless `ended` is set before."""
    if ended.is_set():
        return
    path = work.directory / file.file.name
    way = file.way
    where = Where(work.tables.source, str(way.source.name), file=str(path))
    columns = tuple(column.name for column in dumped_columns(way.source))
    state = writer.state(Destination(way.target, way.source, file.file.name, (), where))
    if state.finished:
        return
    if state.size != file.file.size:
        fault = f"{path.name} had {state.size} bytes then and has {file.file.size} now"
        raise LoadError("LOAD-008", where, values={"fault": fault})
    check_whole(path, file.file.size, file.file.crc32, where)
    text = None if file.file.parquet else open_sql(path, where, work.escape_backslash)
    settings = text.settings if text else FileSettings()
    destination = Destination(way.target, way.source, file.file.name, settings.statements, where)
    if settings.of_bytes:
        _check_joined(way, where)
    if work.into_tidb and settings.of_bytes:
        _check_bytes(way, where)
    if not (settings.zoned or work.in_utc):
        _check_zone(way, where)
    verb = VERBS[work.on_duplicate]
    rewriter = Rewriter(way.target, columns, verb, way.mapping, where, way.constants)
    for piece in _pieces(path, text, state, file, rewriter):
        if ended.is_set():
            return
        if settings.of_bytes and way.unlike:
            _check_unlike(way, piece, where)
        writer.apply(piece, destination)


def _pieces(
    path: Path, text: SqlText | None, state: FileState, file: FileWork, rewriter: Rewriter
) -> Iterator[LoadPiece]:
    if text is None:
        return parquet_pieces(path, state.piece, file.way.source, rewriter, file.way.raw, file.way.clamped)
    return sql_pieces(text, state.piece, state.offset, rewriter)


def _check_bytes(way: Way, where: Where) -> None:
    """Raise LoadError LOAD-024 for a text column whose bytes TiDB would not convert.

    On TiDB text has another character set than in the source, and the text of a file with the source's bytes is not
    converted.
    """
    for column in way.source.columns:
        if (column.charset or "binary") not in _ALIKE:
            values = {"column": column.name, "charset": column.charset, "kept": "utf8mb4"}
            raise LoadError("LOAD-024", where, values=values)


def _check_unlike(way: Way, piece: LoadPiece, where: Where) -> None:
    """Raise LoadError LOAD-024 for text that the target has in another character set, to which no server converts it.

    ASCII text has the same bytes in most of them.
    """
    for name, kept in way.unlike:
        charset = way.source.column(name).charset or ""
        wide = not _WIDE.isdisjoint((charset, kept))
        if _ALIKE.issuperset((charset, kept)):
            continue
        for statement in piece.statements:
            if wide or not (statement.isascii() or all(map(bytes.isascii, literals_of(statement, name, where)))):
                raise LoadError("LOAD-024", where, values={"column": name, "charset": charset, "kept": kept})


def _check_zone(way: Way, where: Where) -> None:
    """Raise LoadError LOAD-028 for a column of TIMESTAMP: nobody knows in which time zone its values are."""
    for column in way.source.columns:
        if column.type == "timestamp":
            raise LoadError("LOAD-028", where, values={"column": column.name})


def _check_joined(way: Way, where: Where) -> None:
    """Raise LoadError LOAD-016 where a mapping's text can't be joined to a column's bytes, as mydumper writes them."""
    mapping = way.mapping
    if mapping is None or not mapping.of_text:
        return
    charset = way.source.column(mapping.source_column).charset or ""
    plain = (mapping.prefix + mapping.suffix).isascii()
    if charset in _WIDE or not (plain or charset.startswith("utf8")):
        values = {"rule": mapping.rule, "column": mapping.source_column, "charset": charset}
        raise LoadError("LOAD-016", where, values=values)
