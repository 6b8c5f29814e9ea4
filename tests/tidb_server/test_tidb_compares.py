"""What takes the place of a collation that TiDB lacks is there, and compares texts as the checks say that it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import MySQLdb
import pytest

from unshard.mysql.charsets import SINGLE_BYTE, to_text
from unshard.mysql.collation_weights import weights
from unshard.mysql.connection import connect
from unshard.mysql.tidb_collations import SAMPLE, Difference, difference, nearest
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer, OtherMariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

LISTED = "SELECT {name}, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
SOURCES: Mapping[str, tuple[type[ThrowawayServer], str]] = {
    "mariadb": (MariadbServer, "FULL_COLLATION_NAME"),
    "newer mariadb": (OtherMariadbServer, "FULL_COLLATION_NAME"),
    "mysql": (MysqlServer, "COLLATION_NAME"),
}
LIKE_UTF8MB4 = frozenset({"utf8mb3", "ucs2", "utf16", "utf32"})
"""Character sets whose collations are those of utf8mb4 by other names."""


@pytest.fixture(scope="module", params=SOURCES)
def source(request: pytest.FixtureRequest) -> Iterator[tuple[ThrowawayServer, dict[str, str]]]:
    """A source, and all of its collations with their character sets."""
    kind, column = SOURCES[request.param]
    with kind() as server:
        yield server, dict(server.query(LISTED.format(name=column)))


@pytest.fixture(scope="module")
def available(tidb: TidbServer) -> dict[str, str]:
    """The collations of the target, with their character sets."""
    return dict(tidb.query(LISTED.format(name="COLLATION_NAME")))


def test_every_collation_becomes_one_that_a_table_can_have(
    tidb: TidbServer, source: tuple[ThrowawayServer, dict[str, str]], available: dict[str, str], schema: str
) -> None:
    chosen = sorted({nearest(collation, available, {}) for collation in source[1]})
    columns = ", ".join(f"c{at} VARCHAR(9) COLLATE {name}" for at, name in enumerate(chosen))
    tidb.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t ({columns})")
    made = tidb.query(f"SELECT COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{schema}'")
    assert len(chosen) > 8
    assert sorted(str(name) for (name,) in made if name) == [name for name in chosen if name != "binary"]


def test_what_is_said_to_be_equal_or_apart_is_so_on_both_servers(
    tidb: TidbServer, source: tuple[ThrowawayServer, dict[str, str]], available: dict[str, str]
) -> None:
    """By the operator =, of each pair that is named for any collation of the server."""
    server, collations = source
    here, there = connect(server.endpoint, "source"), connect(tidb.endpoint, "target")
    of_target = {name: weights(there, name, charset) for name, charset in available.items() if name != "binary"}
    said = 0
    for collation, charset in collations.items():
        chosen = nearest(collation, available, {})
        if chosen == "binary" or charset in LIKE_UTF8MB4:
            continue
        found = difference(weights(here, collation, charset), of_target[chosen])
        for entries, equal_here in ((found.equal, False), (found.apart, True)):
            pairs = [(first, other) for first, *others in map(_texts, entries) for other in others]
            said += len(pairs)
            assert _equal(here, collation, charset, pairs) == [equal_here] * len(pairs), collation
            assert _equal(there, chosen, available[chosen], pairs) == [not equal_here] * len(pairs), collation
    assert said > 1000
    here.close()
    there.close()


def _texts(entry: str) -> list[str]:
    return [text.strip("'") if text.endswith("'") else text for text in entry.split(" = ")]


def _equal(connection: object, collation: str, charset: str, pairs: list[tuple[str, str]]) -> list[bool]:
    if not pairs:
        return []
    asked = ", ".join(
        " = ".join(f"(CONVERT(_utf8mb4 0x{t.encode().hex()} USING {charset}) COLLATE {collation})" for t in pair)
        for pair in pairs
    )
    with connection.cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute(f"SELECT {asked}")
        (row,) = cursor.fetchall()
    return [bool(value) for value in row]


def _difference(tidb: TidbServer, server: ThrowawayServer, collation: str, chosen: str) -> Difference:
    charset, other = (name.partition("_")[0] for name in (collation, chosen))
    here, there = connect(server.endpoint, "source"), connect(tidb.endpoint, "target")
    try:
        return difference(weights(here, collation, charset), weights(there, chosen, other))
    finally:
        here.close()
        there.close()


@pytest.mark.parametrize(
    ("collation", "chosen", "equal", "apart"),
    [
        ("latin1_swedish_ci", "utf8mb4_general_ci", ("A = Ä = Å", "O = Ö", "U = Ü"), ("D = Ð", "Y = Ü", "Ä = Æ")),
        ("latin1_swedish_ci", "utf8mb4_bin", (), ("A = À = Á = Â = Ã = a",)),
        ("latin1_general_ci", "utf8mb4_general_ci", ("C = Ç", "E = È = É = Ê = Ë", "N = Ñ"), ()),
        ("latin1_bin", "latin1_bin", (), ()),
        ("latin1_german2_ci", "utf8mb4_general_ci", ("A = Ä",), ("Ö = OE", "ß = SS")),
        ("cp1251_general_ci", "utf8mb4_general_ci", ("Ѓ = Г",), ()),
        ("utf8mb4_polish_ci", "utf8mb4_unicode_ci", ("A = Ą", "C = Ć"), ()),
        ("utf8mb4_general_nopad_ci", "utf8mb4_general_ci", ("A = 'A '",), ()),
        ("utf8mb4_nopad_bin", "utf8mb4_0900_bin", (), ()),
        ("utf8mb4_unicode_520_ci", "utf8mb4_0900_ai_ci", ("Ѓ = Г",), ("A = 'A '",)),
        ("utf8mb4_general_ci", "utf8mb4_general_ci", (), ()),
        ("sjis_japanese_ci", "utf8mb4_general_ci", ("Ж = ж",), ()),
    ],
)
def test_the_letters_of_known_collations(
    tidb: TidbServer,
    source_server: MariadbServer,
    collation: str,
    chosen: str,
    equal: tuple[str, ...],
    apart: tuple[str, ...],
) -> None:
    found = _difference(tidb, source_server, collation, chosen)
    assert set(equal) <= set(found.equal)
    assert set(apart) <= set(found.apart)
    assert bool(found.equal) == bool(equal)
    assert bool(found.apart) == bool(apart)


def test_a_unique_key_refuses_just_what_is_said_to_be_equal(
    tidb: TidbServer, source_server: MariadbServer, schema: str
) -> None:
    for server, collation in ((source_server, "latin1_swedish_ci"), (tidb, "utf8mb4_general_ci")):
        server.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.t (v VARCHAR(9) COLLATE {collation} PRIMARY KEY)",
            f"INSERT INTO {schema}.t VALUES ('A'), ('D')",
        )
    source_server.run(f"INSERT INTO {schema}.t VALUES ('Ä')")
    with pytest.raises(MySQLdb.IntegrityError, match="1062"):
        tidb.run(f"INSERT INTO {schema}.t VALUES ('Ä')")
    tidb.run(f"INSERT INTO {schema}.t VALUES ('Ð')")
    with pytest.raises(MySQLdb.IntegrityError, match="1062"):
        source_server.run(f"INSERT INTO {schema}.t VALUES ('Ð')")


@pytest.mark.parametrize("charset", ["latin1", "gbk", "ascii"])
def test_a_charset_that_is_kept_keeps_every_character(tidb: TidbServer, schema: str, charset: str) -> None:
    """All that MySQL has in it, by value, with a client that speaks utf8mb4."""
    lengths = (1,) if charset in SINGLE_BYTE or charset == "ascii" else (1, 2)
    texts = [text for size in lengths for raw in range(256**size) if (text := _text(raw.to_bytes(size), charset))]
    tidb.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(1) CHARACTER SET {charset})",
    )
    connection = tidb.connection(schema)
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", list(enumerate(texts)))
        cursor.execute("SELECT v FROM t ORDER BY id")
        assert [value for (value,) in cursor.fetchall()] == texts
    connection.close()
    assert len(texts) == {"latin1": 256, "gbk": 21919, "ascii": 128}[charset]


def _text(raw: bytes, charset: str) -> str:
    try:
        text = to_text(raw, charset)
    except UnicodeDecodeError:
        return ""
    return text if len(text) == 1 else ""


def test_each_text_of_the_sample_is_there_once() -> None:
    assert len(set(SAMPLE)) == len(SAMPLE)
