"""What the head of an SQL file says of its values."""

from __future__ import annotations

import pytest

from unshard.load.file_settings import FileSettings, file_settings, is_setting

NAMES, KEYS, ZONE = b"/*!40101 SET NAMES binary*/;", b"/*!40014 SET FOREIGN_KEY_CHECKS=0*/;", b"SET TIME_ZONE='+00:00';"
BARE_KEYS, MODE = b"SET FOREIGN_KEY_CHECKS=0;", b"/*!40101 SET SQL_MODE='' */;"
BY_MYDUMPER, BY_DUMPLING = b"INSERT INTO `t'` VALUES (1,NULL,\"a'\");", b"INSERT INTO `t\"` VALUES (1,NULL,'a\"');"
BYTES, PLAIN = FileSettings((b"SET NAMES binary",), True, False), FileSettings((), False, False)


@pytest.mark.parametrize(
    ("sets", "rows", "expected"),
    [
        ([b"/*!40101 SET NAMES utf8mb4*/;", KEYS], BY_DUMPLING, FileSettings((b"SET NAMES utf8mb4",), False, False)),
        ([NAMES, KEYS, ZONE], BY_MYDUMPER, FileSettings((b"SET NAMES binary", b"SET TIME_ZONE='+00:00'"), True, True)),
        ([NAMES, KEYS, ZONE], BY_DUMPLING, FileSettings((b"SET NAMES binary", b"SET TIME_ZONE='+00:00'"), True, True)),
        ([NAMES, KEYS], BY_MYDUMPER, BYTES),
        ([NAMES, KEYS, MODE], BY_DUMPLING, BYTES),
        ([NAMES], b"INSERT INTO t VALUES (1, NULL);", BYTES),
        ([NAMES, BARE_KEYS], BY_DUMPLING, PLAIN),
        ([KEYS, NAMES], BY_DUMPLING, PLAIN),
        ([NAMES], BY_DUMPLING, PLAIN),
        ([NAMES], b"INSERT INTO t VALUES (1);\nINSERT INTO t VALUES (x'00');", PLAIN),
        ([], BY_DUMPLING, PLAIN),
    ],
)
def test_character_set_and_time_zone(sets: list[bytes], rows: bytes, expected: FileSettings) -> None:
    head = b"\n".join(sets)
    assert file_settings(sets, head + rows, len(head)) == expected


def test_only_a_set_is_a_setting() -> None:
    assert all(map(is_setting, (NAMES, KEYS, ZONE, BARE_KEYS, MODE)))
    assert not any(map(is_setting, (BY_MYDUMPER, b"CREATE TABLE t (id INT);", b"SETTLE;")))
