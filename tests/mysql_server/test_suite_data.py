"""The binlog files of MariaDB's own test suite, of servers back to MySQL 4.1: values or a named refusal, never else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from support.binlog_listing import listed
from support.binlog_tools import ask
from unshard.binlog.headers import MAGIC
from unshard.errors import BinlogError
from unshard.testing.programs import program
from unshard.testing.server_trees import server_tree

AGREED = {"mdev6020-mysql-bin.000001", "ver_trunk_row_v2.001", "write-partial-row.binlog", "mariadb-5.5-binlog.000001"}
OF_MYSQL_8 = "mdev35643_mysql_80_binlog.000001"  # MariaDB's tool gives up in the middle of it


def files() -> Iterator[Path]:
    """Each different file once, whatever it is called."""
    seen = set()
    for path in sorted(path for path in server_tree("suite-data").rglob("*") if path.is_file()):
        data = path.read_bytes()
        digest = hashlib.sha256(data).digest()
        if data.startswith(MAGIC) and digest not in seen:
            seen.add(digest)
            yield path


def test_every_file_is_read_or_refused_by_name() -> None:
    agreed, differ, refused = set(), [], []
    for path in files():
        try:
            found = listed(path)
        except BinlogError as error:
            refused.append(error)
            continue
        told, in_order = ask([program("mariadb-binlog")], path)
        rows = sum(len(list(shown.rows)) for shown in found if shown.rows is not None)
        outer = [shown.header for shown in found if shown.within is None]
        events = [[header.offset, header.code, header.length] for header in outer]
        if path.name == OF_MYSQL_8:
            assert (len(events), rows) == (40, 106)
        elif in_order:
            agreed.add(path.name)
            if (events, rows) != (told.events, len(told.rows)):
                differ.append(path.name)
    assert [error for error in refused if not error.where.file and not error.where.position] == []
    assert differ == []
    assert agreed >= AGREED
