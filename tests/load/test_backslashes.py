"""Texts of dumps that are escaped by backslashes, and those of `dumpling --escape-backslash=false`, which are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.foreign_dumps import METADATA
from unshard.errors import LoadError, Where
from unshard.load.backslashes import escaped
from unshard.load.unit import LoadUnit
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer

HEAD = b"/*!40101 SET NAMES binary*/;\n/*!40103 SET TIME_ZONE='+00:00' */;\nINSERT INTO `t'\\` VALUES\n"
ESCAPED = (
    rb"""(1,'it\'s','','C:\\temp\\',x'00','\0\n\r\"\Z'),(-2,"it\'s","C:\\\'",NULL,CONVERT("[\"a\"]" USING UTF8MB4))"""
)
OF_BYTES = b"""(1,"\\\xe9t\\\xe9","\xc3\xa9\\\xc3")"""
PLAIN = rb"""(1,'it''s','','C:\temp\',x'00','a"b'),(-2,'''','C:\''',NULL,'/*\*/')""" + b",(3,'\\\n\r\0\x1a')"
DOUBLED = rb"""(1,'it''s','','C:\\temp\\',x'00','a"b'),(-2,'''','C:\\''',NULL,'/*\\*/')""" + b",(3,'\\\\\n\r\0\x1a')"


@pytest.mark.parametrize("told", [None, True])
def test_escaped_texts_stay_as_they_are(told: bool | None) -> None:
    """Also those in which mydumper has escaped bytes that are no characters of its session."""
    data = HEAD + ESCAPED + b";\n" + HEAD + OF_BYTES + b";\n"
    assert escaped(data, told, Where()) == data


def test_backslashes_of_plain_texts_are_doubled() -> None:
    """Those of names and comments are not."""
    head = b"-- it's \\\n# it's \\\n/* it's \\ */" + HEAD
    assert escaped(head + PLAIN + b";\n", False, Where()) == head + DOUBLED + b";\n"


@pytest.mark.parametrize("told", [None, True, False])
def test_a_file_without_a_backslash_has_one_meaning(told: bool | None) -> None:
    data = b"INSERT INTO `t` VALUES (1,'it''s\n\"so\"');\n"
    assert escaped(data, told, Where()) == data


@pytest.mark.parametrize("before", [0, 5000])
@pytest.mark.parametrize(
    ("told", "text", "fault", "at"),
    [
        (None, rb"(1,'C:\temp')", "a backslash before `t`", 6),
        (None, rb"(1,'C:\new\x')", "a backslash before `x`", 10),
        (None, rb"(1,'C:\new\'),(2,'x')", "`'` alone", 17),
        (None, rb"(1,'it''s','\n')", "`'` alone", 6),
        (None, rb"""(1,'a"b','\n')""", '`"` alone', 5),
        (None, b"(1,'a\nb','\\n')", "the byte 0x0A alone", 5),
        (None, b"(1,'\\n\\ ')", "a backslash before the byte 0x20", 6),
        (False, rb"(1,'C:\\temp'),(2,'it\'s')", "`'` alone", 22),
    ],
)
def test_a_text_that_contradicts_its_form_is_refused(
    told: bool | None, text: bytes, fault: str, at: int, before: int
) -> None:
    """Also behind texts that are the same in both forms."""
    rows = b"(1,'a')," * before
    with pytest.raises(LoadError) as caught:
        escaped(rows + text + b";\n", told, Where(file="a.t.1.sql"))
    assert caught.value.code == "LOAD-029"
    form = "by backslashes, as dumpling" if told is None else "as `--escape-backslash=false`"
    assert f"[file a.t.1.sql]: a text in this file is not escaped {form}" in str(caught.value)
    assert f"{fault} at byte {len(rows) + at:,}\n" in str(caught.value)


@pytest.mark.parametrize("told", [None, False])
@pytest.mark.parametrize("end", [rb"(1,'C:\n", rb"(1,'C:\n\ "[:-1], rb"(1,`C:\n"])
def test_a_file_that_ends_inside_a_text_is_left_to_the_cutting_of_statements(told: bool | None, end: bytes) -> None:
    assert escaped(end, told, Where())[:5] == end[:5]


SCHEMA = "CREATE TABLE `t` (`id` int(11) NOT NULL, `v` varchar(20) DEFAULT NULL, PRIMARY KEY (`id`));\n"
VALUES = [(1, "it's"), (2, "C:\\new\\"), (3, 'a "b"\n')]


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], Path]:
    """`folder(rows)`: a dump of dumpling with a table `a.t`."""

    def make(rows: str) -> Path:
        folder = tmp_path / "dump"
        folder.mkdir(exist_ok=True)
        (folder / "metadata").write_text(METADATA)
        (folder / "a-schema-create.sql").write_text("CREATE DATABASE `a`;\n")
        (folder / "a.t-schema.sql").write_text(SCHEMA)
        (folder / "a.t.000000000.sql").write_text(f"/*!40101 SET NAMES binary*/;\nINSERT INTO `t` VALUES\n{rows};\n")
        return folder

    return make


BY_BACKSLASHES = r"""(1,'it\'s'),(2,'C:\\new\\'),(3,'a \"b\"\n')"""
BY_QUOTES = """(1,'it''s'),(2,'C:\\new\\'),(3,'a "b"\n')"""


@pytest.mark.server
@pytest.mark.parametrize(
    ("rows", "told"),
    [(BY_BACKSLASHES, None), (BY_BACKSLASHES, True), (BY_QUOTES, False)],
    ids=["usual", "told", "plain"],
)
def test_the_values_are_those_of_the_source(
    rows: str,
    told: bool | None,
    folder: Callable[[str], Path],
    make_load: Callable[..., LoadUnit],
    schema: str,
    target_server: MariadbServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Which form was taken is told where nobody has named it."""
    folder(rows)
    make_load(schema, route=lambda name: TableName(schema, name.table), escape_backslash=told).run()
    warned = [record for record in caplog.records if "backslashes in the dump's texts" in str(record.msg)]
    assert len(warned) == (told is None)
    assert target_server.query(f"SELECT id, v FROM {schema}.t ORDER BY id") == VALUES


@pytest.mark.server
def test_rows_of_a_begun_file_are_not_read_in_the_other_form(
    folder: Callable[[str], Path], make_load: Callable[..., LoadUnit], schema: str, target_server: MariadbServer
) -> None:
    rules = {"route": lambda name: TableName(schema, name.table)}
    # the larger file is loaded first
    first = folder("(2,'C:\\newer')") / "a.t.000000000.sql"
    first.with_name("a.t.000000001.sql").write_bytes(first.read_bytes().replace(b"(2,'C:\\newer')", b"(3,'C:\\temp')"))
    with pytest.raises(LoadError, match=r"LOAD-029.*a\.t\.000000001\.sql"):
        make_load(schema, pool_size=1, **rules).run()
    with pytest.raises(LoadError, match=r"LOAD-019.*a\.t\.000000000\.sql") as caught:
        make_load(schema, escape_backslash=False, **rules).run()
    assert "`extra-args`" in caught.value.hint
    with pytest.raises(LoadError, match=r"LOAD-029"):
        make_load(schema, **rules).run()
    assert target_server.query(f"SELECT id FROM {schema}.t") == [(2,)]
