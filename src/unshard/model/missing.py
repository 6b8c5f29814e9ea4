"""Rows that should be in the target and are not."""

from __future__ import annotations

from typing import Literal

OnMissingRow = Literal["warn", "stop"]
"""What becomes of an UPDATE or DELETE that finds no row in the target: it is counted and logged, or ends the task."""
