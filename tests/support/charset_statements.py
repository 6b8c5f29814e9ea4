"""Statements that convert a table's columns and name its default character set at once."""

from __future__ import annotations

_MADE = "(id INT PRIMARY KEY, v VARCHAR(9), u VARCHAR(9) CHARACTER SET ascii, x TEXT) CHARSET latin1"

_CHANGES = (
    "CONVERT TO CHARACTER SET utf8mb4, DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin",
    "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin, CONVERT TO CHARACTER SET utf8mb4",
    "CONVERT TO CHARACTER SET utf8mb4, COLLATE utf8mb4_bin",
    "MODIFY v VARCHAR(20), CONVERT TO CHARACTER SET utf8mb4",
    "CONVERT TO CHARACTER SET utf8mb4, MODIFY v VARCHAR(20), DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin",
    "CONVERT TO CHARACTER SET utf8mb4, ADD w VARCHAR(3), DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin",
    "CONVERT TO CHARACTER SET utf8mb4, ADD w VARCHAR(3) CHARACTER SET latin1, COLLATE utf8mb4_bin",
    "ADD w VARCHAR(3), DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin",
)

CONVERSIONS = tuple(
    statement
    for number, change in enumerate(_CHANGES)
    for statement in (f"CREATE TABLE conv{number} {_MADE}", f"ALTER TABLE conv{number} {change}")
)
