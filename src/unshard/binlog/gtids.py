"""Formats the GTIDs that the scanner has collected as strings for the index."""

from __future__ import annotations

from mmap import mmap
from struct import unpack_from

from unshard.binlog.headers import CHECKSUM_LENGTH, HEADER_LENGTH
from unshard.model.gtid import MysqlGtidSet, origin_text

_FIXED, _FLAGS_AT, _COMMIT_ID = 13, 12, 0x02  # of a MariaDB GTID event's body
_MYSQL_GTID, _TIME_AT = 33, 42  # the event, and where its body has the commit time
_MARIADB_ORIGIN = 8  # bytes; a MySQL server's uuid has more


def gtid_texts(runs: list[tuple[bytes, int, int]]) -> tuple[str, ...]:
    """Return the runs of the scanner as the texts of `TransactionRange.gtids`."""
    mariadb: dict[bytes, int] = {}
    mysql: dict[bytes, list[tuple[int, int]]] = {}
    for origin, first, last in runs:
        if len(origin) == _MARIADB_ORIGIN:
            mariadb.pop(origin, None)  # the latest goes last
            mariadb[origin] = last
        else:
            mysql.setdefault(origin, []).append((first, last))
    sets = (MysqlGtidSet().add(*((origin_text(origin), *run) for run in mysql[origin])) for origin in sorted(mysql))
    return tuple(gtid_text((origin, number)) for origin, number in mariadb.items()) + tuple(map(str, sets))


def gtid_text(gtid: tuple[bytes, int] | None) -> str:
    """Return one GTID as its server writes it; "" for None."""
    if gtid is None:
        return ""
    origin, number = gtid
    if len(origin) == _MARIADB_ORIGIN:
        domain, server = unpack_from("<II", origin)
        return f"{domain}-{server}-{number}"
    return f"{origin_text(origin)}:{number}"


def commit_time(data: bytes | memoryview | mmap, group: int) -> float | None:
    """Return the time of this server's commit of the MySQL group at `group`: unix seconds, to the microsecond.

    None where the event doesn't say: servers before 8.0, tagged GTIDs, MariaDB. (Its body: flags 1, uuid 16, number
    8, then a type of 2 and two numbers of 8, then the time in 7 bytes; their highest bit says that another follows.)
    """
    if len(data) < group + HEADER_LENGTH + _TIME_AT + 7 or data[group + 4] != _MYSQL_GTID:
        return None
    (length,) = unpack_from("<I", data, group + 9)
    if length < HEADER_LENGTH + _TIME_AT + 7 or data[group + HEADER_LENGTH + _TIME_AT - 17] != 2:
        return None
    micros = int.from_bytes(data[group + HEADER_LENGTH + _TIME_AT : group + HEADER_LENGTH + _TIME_AT + 7], "little")
    return (micros & ~(1 << 55)) / 1e6 or None


def alter_flags(data: bytes | memoryview | mmap, group: int, at: int, *, checksum: bool) -> int:
    """Return the second flag byte of the MariaDB GTID event at `group`, else 0: the phase of an ALTER at `at`."""
    if group >= at or data[group + 4] != 162:
        return 0
    (length,) = unpack_from("<I", data, group + 9)
    body = length - HEADER_LENGTH - (CHECKSUM_LENGTH if checksum else 0)
    commit_id = data[group + HEADER_LENGTH + _FLAGS_AT] & _COMMIT_ID
    extra = _FIXED + (8 if commit_id else 0)
    return int(data[group + HEADER_LENGTH + extra]) if extra < body else 0
