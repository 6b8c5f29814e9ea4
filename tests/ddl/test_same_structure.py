"""Two texts of one structure, as a server may write it now this way and now that."""

from __future__ import annotations

import pytest

from unshard.ddl.schema_equality import alike, normal, same, without_widths

X = "CREATE TABLE `t` (`x` int)"
Y = "CREATE TABLE `t` (`y` int)"
T = "CREATE TABLE `t` (`"
LATIN = "ENGINE=InnoDB DEFAULT CHARSET=latin1"
COLUMNS = {
    "CHARACTER SET latin1 COLLATE latin1_swedish_ci": True,
    "CHARACTER SET latin1": True,
    "COLLATE latin1_swedish_ci": True,
    "COLLATE latin1_bin": False,
    "CHARACTER SET utf8mb3": False,
    "COMMENT 'COLLATE latin1_swedish_ci'": False,
}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (X, X, True),
        (X, Y, False),
        (X, None, False),
        (None, None, True),
        (f"{X} AUTO_INCREMENT=7 CHARSET=utf8", f"{X} CHARSET=utf8", True),
        (f"{X} AUTO_INCREMENT=7", f"{X} AUTO_INCREMENT=8 COMMENT='x'", False),
        (f"{X} COMMENT='AUTO_INCREMENT=7'", f"{X} COMMENT='AUTO_INCREMENT=8'", False),
        (f"{X}\n/*!50100 PARTITION BY HASH (x) */", f"{X} partition by hash (x)", True),
        (f"{X} PARTITION BY HASH (x)", X, False),
        ("CREATE TABLE `t` (`a` INT)", "CREATE TABLE `T` (`a` INT)", False),
        ("CREATE TABLE `t` (`key` int)", "CREATE TABLE `t` (KEY int)", False),
        ("CREATE TABLE `t` (`a` int DEFAULT 'X')", "CREATE TABLE `t` (`a` int DEFAULT 'x')", False),
        *[(f"{T}a` text) {LATIN}", f"{T}a` text {column}) {LATIN}", alike) for column, alike in COLUMNS.items()],
        (f"{T}a` text) {LATIN}", f"{T}a` text) {LATIN} COLLATE=latin1_bin", False),
        (f"{T}a` int DEFAULT NULL)", f"{T}a` int)", True),
        (f"{T}a` int DEFAULT NULL)", f"{T}a` int NOT NULL)", False),
        ("CREATE DATABASE `d` CHARACTER SET latin1", "CREATE DATABASE `d` CHARACTER SET latin1 COLLATE x", False),
        ("CREATE TABLE `t` (`a` bigint /*T![auto_rand] AUTO_RANDOM(5) */)", "CREATE TABLE `t` (`a` bigint)", True),
    ],
)
def test_same_structure(one: str | None, other: str | None, equal: bool) -> None:
    assert same(one, other) is equal


CHILD = "CREATE TABLE `c` (`a` int, `b` int, {}CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`id`), KEY `z` (`b`))"


@pytest.mark.parametrize(
    ("key", "equal"),
    [
        ("", True),
        ("KEY `f` (`a`), ", True),
        ("KEY `a` (`a`), KEY `f` (`a`), ", True),
        ("UNIQUE KEY `a` (`a`), ", False),
        ("KEY `a` (`a`) USING HASH, ", False),
        ("KEY `a` (`a`,`b`), ", False),
        ("KEY `a` (`b`), ", False),
    ],
)
def test_keys_that_servers_make_for_foreign_keys(key: str, equal: bool) -> None:
    assert alike(CHILD.format("KEY `a` (`a`), "), CHILD.format(key)) is equal
    assert not alike(CHILD.format(key), None)


def test_a_key_without_a_foreign_key_counts() -> None:
    assert not alike("CREATE TABLE `c` (`a` int, KEY `a` (`a`))", "CREATE TABLE `c` (`a` int, KEY `b` (`a`))")


def test_display_widths_of_integers_are_left_out() -> None:
    old = normal("CREATE TABLE `t` (`int` bigint(20) unsigned NOT NULL, `b` int(11), `c` decimal(20), KEY `int` (`b`))")
    new = normal("CREATE TABLE `t` (`int` bigint unsigned NOT NULL, `b` int, `c` decimal(20), KEY `int` (`b`))")
    assert old != new
    assert old is not None
    assert new is not None
    assert without_widths(old) == without_widths(new) == new
