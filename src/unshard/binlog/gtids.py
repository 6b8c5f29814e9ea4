"""GTIDs as the index tells them: the texts of the scanner's runs."""

from __future__ import annotations

from struct import unpack_from

from unshard.model.gtid import MysqlGtidSet, origin_text

_MARIADB_ORIGIN = 8  # bytes; a MySQL server's uuid has more


def gtid_texts(runs: list[tuple[bytes, int, int]]) -> tuple[str, ...]:
    """What `Extent.gtids` holds, from the scanner's runs."""
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
    """One GTID as its server writes it; "" for None."""
    if gtid is None:
        return ""
    origin, number = gtid
    if len(origin) == _MARIADB_ORIGIN:
        domain, server = unpack_from("<II", origin)
        return f"{domain}-{server}-{number}"
    return f"{origin_text(origin)}:{number}"
