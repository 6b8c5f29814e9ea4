"""Each collation of MySQL and MariaDB has one in TiDB that stands for it."""

from __future__ import annotations

import pytest

from unshard.mysql.collations import default_collation
from unshard.mysql.tidb_collations import charset_of_name, difference, nearest
from unshard.testing.mariadb_server import MariadbServer

TIDB = frozenset(
    ("ascii_bin", "binary", "gbk_bin", "gbk_chinese_ci", "latin1_bin", "utf8_bin", "utf8_general_ci", "utf8_unicode_ci",
     "utf8mb4_0900_ai_ci", "utf8mb4_0900_bin", "utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci")
)  # fmt: skip
WITHOUT_0900 = frozenset(name for name in TIDB if "0900" not in name)
"""Those of TiDB before 7.4."""

BYTES_ALONE = frozenset(name for name in WITHOUT_0900 if name.endswith("bin") or name == "binary")
"""Those of a TiDB whose collations were turned off when it was made."""


@pytest.mark.parametrize(
    ("source", "taken", "older", "bytes_alone"),
    [
        ("latin1_swedish_ci", "utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_bin"),
        ("LATIN1_SWEDISH_CI", "utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_bin"),
        ("latin1_swedish_nopad_ci", "utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_bin"),
        ("latin1_general_cs", "utf8mb4_bin", "utf8mb4_bin", "utf8mb4_bin"),
        ("latin1_bin", "latin1_bin", "latin1_bin", "latin1_bin"),
        ("latin1_nopad_bin", "utf8mb4_0900_bin", "utf8mb4_bin", "utf8mb4_bin"),
        ("latin2_czech_cs", "utf8mb4_bin", "utf8mb4_bin", "utf8mb4_bin"),
        ("ascii_general_ci", "utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_bin"),
        ("ascii_bin", "ascii_bin", "ascii_bin", "ascii_bin"),
        ("binary", "binary", "binary", "binary"),
        ("gbk_chinese_ci", "gbk_chinese_ci", "gbk_chinese_ci", "utf8mb4_bin"),
        ("gb18030_chinese_ci", "utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_bin"),
        ("gb18030_unicode_520_ci", "utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci", "utf8mb4_bin"),
        ("sjis_japanese_ci", "utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_bin"),
        ("utf16_bin", "utf8mb4_bin", "utf8mb4_bin", "utf8mb4_bin"),
        ("ucs2_swedish_ci", "utf8mb4_unicode_ci", "utf8mb4_unicode_ci", "utf8mb4_bin"),
        ("utf8_general_ci", "utf8_general_ci", "utf8_general_ci", "utf8_bin"),
        ("utf8mb3_general_ci", "utf8_general_ci", "utf8_general_ci", "utf8_bin"),
        ("utf8mb3_general_mysql500_ci", "utf8_general_ci", "utf8_general_ci", "utf8_bin"),
        ("utf8mb3_tolower_ci", "utf8_general_ci", "utf8_general_ci", "utf8_bin"),
        ("utf8_swedish_ci", "utf8_unicode_ci", "utf8_unicode_ci", "utf8_bin"),
        ("utf8mb3_uca1400_ai_ci", "utf8mb4_0900_ai_ci", "utf8_unicode_ci", "utf8_bin"),
        ("utf8mb3_nopad_bin", "utf8mb4_0900_bin", "utf8_bin", "utf8_bin"),
        ("utf8mb4_general_nopad_ci", "utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_bin"),
        ("utf8mb4_general1400_as_ci", "utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_bin"),
        ("utf8mb4_unicode_520_ci", "utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci", "utf8mb4_bin"),
        ("utf8mb4_sv_0900_ai_ci", "utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci", "utf8mb4_bin"),
        ("utf8mb4_cs_0900_ai_ci", "utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci", "utf8mb4_bin"),
        ("utf8mb4_0900_as_ci", "utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci", "utf8mb4_bin"),
        ("utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_bin", "utf8mb4_bin"),
        ("utf8mb4_ja_0900_as_cs_ks", "utf8mb4_0900_bin", "utf8mb4_bin", "utf8mb4_bin"),
        ("utf8mb4_uca1400_ai_ci", "utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci", "utf8mb4_bin"),
        ("utf8mb4_uca1400_swedish_nopad_ai_cs", "utf8mb4_0900_bin", "utf8mb4_bin", "utf8mb4_bin"),
        ("utf8mb4_uca1400_as_cs", "utf8mb4_bin", "utf8mb4_bin", "utf8mb4_bin"),
        ("uca1400_ai_ci", "utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci", "utf8mb4_bin"),
        ("utf8mb4_thai_520_w2", "utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci", "utf8mb4_bin"),
        ("utf8mb4_klingon_2026_ai_ci", "utf8mb4_unicode_ci", "utf8mb4_unicode_ci", "utf8mb4_bin"),
    ],
)
def test_a_collation_becomes_the_nearest_that_the_target_has(
    source: str, taken: str, older: str, bytes_alone: str
) -> None:
    assert [nearest(source, names, {}) for names in (TIDB, WITHOUT_0900, BYTES_ALONE)] == [taken, older, bytes_alone]


def test_what_the_user_wants_comes_first_also_for_a_collation_that_the_target_has() -> None:
    wished = {"latin1_swedish_ci": "utf8mb4_bin", "UTF8_general_ci": "utf8mb4_unicode_ci", "x_ci": "nowhere_ci"}
    assert nearest("latin1_swedish_ci", TIDB, wished) == "utf8mb4_bin"
    assert nearest("utf8mb3_general_ci", TIDB, wished) == "utf8mb4_unicode_ci"
    assert nearest("latin1_german1_ci", TIDB, wished) == "utf8mb4_general_ci"
    assert nearest("x_ci", TIDB, wished) == "nowhere_ci"


def test_a_server_without_any_of_them_is_no_tidb() -> None:
    with pytest.raises(ValueError, match="latin1_swedish_ci"):
        nearest("latin1_swedish_ci", {"utf16_bin"}, {})


@pytest.mark.parametrize("available", [TIDB, WITHOUT_0900, BYTES_ALONE])
def test_every_collation_of_mariadb_becomes_one_that_tidb_has(
    source_server: MariadbServer, available: frozenset[str]
) -> None:
    listed = source_server.query(
        "SELECT FULL_COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    )
    names = [str(name) for (name,) in listed]
    assert len(names) > 1000
    assert {nearest(name, available, {}) for name in names} == available


def test_the_default_of_a_charset_is_the_servers_own(source_server: MariadbServer) -> None:
    listed = source_server.query(
        "SELECT CHARACTER_SET_NAME, DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS"
    )
    assert [(charset, default_collation(charset)) for charset, _ in listed] == listed


def test_two_collations_are_compared_by_the_texts_that_both_have() -> None:
    here = {"A": 1, "Ä": 2, "Å": 3, "D": 4, "Ð": 4, "E": 5, "ß": 6}
    there = {"A": 1, "Ä": 1, "Å": 1, "D": 4, "Ð": 9, "E": 5, "Ж": 7}
    found = difference(here, there)
    assert found.equal == ("A = Ä = Å",)
    assert found.apart == ("D = Ð",)
    assert difference({"a": 1, "a ": 2}, {"a": 1, "a ": 1}).equal == ("a = 'a '",)


def test_the_charset_of_tidbs_collations() -> None:
    assert {name: charset_of_name(name) for name in ("utf8_bin", "binary", "utf8mb4_0900_ai_ci")} == {
        "utf8_bin": "utf8",
        "binary": "binary",
        "utf8mb4_0900_ai_ci": "utf8mb4",
    }
