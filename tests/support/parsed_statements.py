"""Statements that the tests of the parser know."""

from __future__ import annotations

from pathlib import Path

import yaml

_FILE = Path(__file__).parents[1] / "ddl" / "statements.yaml"
_OF_NO_TABLE = ("sequence", "temporary table")


def statements() -> list[str]:
    """Every statement on tables that is copied to a target."""
    found = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return [case["sql"] for case in found["tables"] if not case["kind"].endswith(_OF_NO_TABLE)]
