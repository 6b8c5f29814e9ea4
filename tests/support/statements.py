"""Statements that a client writes in a character set of its own, and their way through the binlog to another server."""

from __future__ import annotations

from struct import unpack_from
from typing import Any

from unshard.binlog.query import read_query
from unshard.mysql.connection import rows
from unshard.testing.throwaway_server import ThrowawayServer

LETTERS = {
    "latin1": ("cp1252", "größe", "naïve €"),
    "latin2": ("iso8859_2", "długość", "žluťoučký"),
    "cp1251": ("cp1251", "длина", "съешь ещё"),
    "koi8r": ("koi8_r", "длина", "съешь"),
    "gbk": ("gbk", "長度乗", "乗\\'中"),
    "big5": ("big5", "功能", "許功蓋"),
    "sjis": ("shift_jis", "表示", "ソ十予"),
    "cp932": ("cp932", "表示", "①ソ"),
    "ujis": ("euc_jp", "表示", "ソ十予"),
    "euckr": ("cp949", "길이", "똠방각하"),
    "greek": ("iso8859_7", "μήκος", "ψάρι"),
    "utf8mb4": ("utf-8", "é中", "naïve 中"),
}
"""By client character set: Python's codec, a name, and a text as it is written between quotes."""


def definition(charset: str) -> bytes:
    """Return a CREATE TABLE with letters of that character set in names, a default, a comment and members."""
    codec, name, text = LETTERS[charset]
    sql = (
        f"CREATE TABLE `t_{name}` (`{name}` VARCHAR(30) DEFAULT '{text}' COMMENT '{text}',"
        f" kind ENUM('{text}', 'b') DEFAULT '{text}', parts SET('a', '{text}') DEFAULT 'a,{text}',"
        f" KEY `k_{name}` (`{name}`)) DEFAULT CHARSET {charset} COMMENT '{text}'"
    )
    return sql.encode(codec)


def carried_over(
    source: ThrowawayServer, target: ThrowawayServer, schema: str, charset: str, sql: bytes | None = None
) -> tuple[str, str]:
    """Run `definition`, or `sql`, on the source in that character set, and its logged text on the target in utf8mb4.

    Returns what the two servers then have: name and definition of the only table of `schema`.
    """
    for server in (source, target):
        server.run(f"CREATE DATABASE {schema}")
    connection = source.connection(schema)
    try:
        rows(connection, f"SET NAMES {charset}")
        connection.query(sql or definition(charset))
    finally:
        connection.close()
    target.run(last_query(source.binlog_files()[-1].read_bytes()).replace("%", "%%"), database=schema)
    return _only_table(source, schema), _only_table(target, schema)


def last_query(data: bytes) -> str:
    found = b""
    at = 4
    while at < len(data):
        (size,) = unpack_from("<I", data, at + 9)
        if data[at + 4] == 2:
            found = data[at + 19 : at + size - 4]
        at += size
    return read_query(found).sql


def _only_table(server: ThrowawayServer, schema: str) -> str:
    connection: Any = server.connection(schema)
    try:
        ((name,),) = rows(connection, "SHOW TABLES")
        return str(rows(connection, f"SHOW CREATE TABLE `{name}`"))
    finally:
        connection.close()
