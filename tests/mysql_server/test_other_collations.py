"""Collation ids against the lists of a MySQL and of a newer MariaDB."""

from __future__ import annotations

from unshard.mysql.collations import charset_of
from unshard.testing.mysql_server import MysqlServer, OtherMariadbServer

APPLICABLE = "SELECT id, character_set_name FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY WHERE id > 0"


def test_every_collation_of_mysql_has_its_charset(mysql_source: MysqlServer) -> None:
    listed = mysql_source.query("SELECT id, character_set_name FROM information_schema.COLLATIONS")
    assert len(listed) > 250
    assert [(number, charset_of(number)) for number, _ in listed] == listed


def test_every_collation_of_a_newer_mariadb_has_its_charset(other_mariadb: OtherMariadbServer) -> None:
    listed = other_mariadb.query(APPLICABLE)
    assert len(listed) > 1200
    assert [(number, charset_of(number)) for number, _ in listed] == listed
