"""Advice of the error catalogue that has a user remove something or begin anew: a test follows it to its end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unshard.error_catalogue import CATALOGUE
from unshard.error_catalogue.entry import ANEW

TESTS = Path(__file__).parent
DRASTIC = re.compile(
    r"\banew\b|from nothing|start over|copy (it|the table) again|\bremove\b|--reset|--remove-meta|\btruncate\b"
    r"|empty (it|them)|drop (that|the) table|leave (the table|that part) out|delete (those|what)",
    re.IGNORECASE,
)
RELAY_FILE = "test_a_relay_file_is_removed"
LEFT_OUT = "test_a_table_is_left_out"
RESET = "test_a_reset_begins_anew"
FOLDER = "test_a_folder_is_removed"
WALKED = {
    **dict.fromkeys(("BINLOG-001", "BINLOG-002", "BINLOG-003", "BINLOG-006", "BINLOG-023"), RELAY_FILE),
    **dict.fromkeys(("BINLOG-030", "BINLOG-050"), RELAY_FILE),
    **dict.fromkeys(("BINLOG-020", "BINLOG-027", "LOAD-023"), LEFT_OUT),
    **dict.fromkeys(("DUMP-002", "DUMP-006", "RELAY-016", "BINLOG-035"), FOLDER),
    "COMPARE-008": "test_the_progress_of_another_comparison_is_refused_until_its_file_is_removed",
    "COMPARE-018": "test_a_cut_over_as_it_is_typed",
    "DDL-012": "test_a_table_of_others_is_dropped",
    "LOAD-004": "test_the_target_table_has_another_shape",
    "LOAD-005": "test_shards_that_share_ids",
    "LOAD-026": "test_a_table_that_was_there_is_emptied_and_one_with_rows_of_others_kept",
    "RELAY-015": "test_a_source_that_was_reset",
    "RELAY-030": "test_a_dump_in_hand_is_of_one_server",
    "RELAY-032": "test_a_dump_in_hand_is_of_one_server",
    "SHARD-030": "test_a_create_that_is_left_out_makes_nobody_wait",
    "SHARD-035": "test_the_task_stops_at_the_new_shard_and_gets_past_it",
    "SYNC-003": "test_a_row_of_others_is_removed",
}
"""By code, the test that follows the advice; codes of one cause in the advice share one. Where the advice is a reset,
`RESET` follows it: what made it necessary leaves no trace in what a reset takes away."""
BY_HAND = {
    "CONFIG-008": "an argument of a rule, before anything is written",
    "CONFIG-021": "a rule, before the task begins",
    "LOAD-024": "a dump of another tool",
    "SHARD-005": "a lock, and nothing else; whose DDL is run by hand then",
    "SHARD-006": "a lock, and nothing else; whose DDL is run by hand then",
    "SHARD-023": "rows that the statement takes away",
    "SYNC-046": "what DM left: rows that nobody finished meet LOAD-026",
    "SYNC-067": "an operator is given again",
    "DDL-011": "the user's own copy of a table",
    "DDL-034": "the user's own copy of a table",
}
"""By code, what the advice has the user do that the task can't know of, or that comes before it."""
DRASTIC_CODES = [code for code, entry in CATALOGUE.items() if DRASTIC.search(entry.hint)]


def test_none_is_forgotten() -> None:
    known = WALKED.keys() | BY_HAND.keys()
    resets = {code for code in DRASTIC_CODES if ANEW.removeprefix("begin ") in CATALOGUE[code].hint}
    assert set(DRASTIC_CODES) - known - resets == {"LOAD-025"}
    assert known - set(DRASTIC_CODES) == set()


@pytest.mark.parametrize("name", sorted({*WALKED.values(), RESET}))
def test_it_is_there(name: str) -> None:
    found = [path for path in TESTS.rglob("test_*.py") if f"\ndef {name}(" in path.read_text()]
    assert len(found) == 1


def test_nobody_is_told_to_forget_the_records_alone() -> None:
    """Behind `--remove-meta` the rows of the copy are still there: LOAD-025 comes next."""
    assert [code for code, entry in CATALOGUE.items() if "remove-meta" in entry.hint] == []
