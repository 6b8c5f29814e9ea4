"""Advice of the error catalogue that has a user remove something or begin anew: a test follows it to its end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unshard.error_catalogue import CATALOGUE

TESTS = Path(__file__).parent
DRASTIC = re.compile(
    r"\banew\b|from nothing|start over|copy (it|the table) again|\bremove\b|--reset|--remove-meta|\btruncate\b"
    r"|empty (it|them)|drop (that|the) table|leave (the table|that part) out|delete (those|what)",
    re.IGNORECASE,
)
RELAY_FILE = "test_a_relay_file_is_removed"
LEFT_OUT = "test_a_table_is_left_out"
RESET = "test_a_reset_begins_anew"
LOG = "test_a_log_that_can_not_be_followed_is_left_behind"
FOLDER = "test_a_folder_is_removed"
WALKED = {
    **dict.fromkeys(("BINLOG-001", "BINLOG-002", "BINLOG-003", "BINLOG-006", "BINLOG-023"), RELAY_FILE),
    **dict.fromkeys(("BINLOG-030", "BINLOG-050"), RELAY_FILE),
    **dict.fromkeys(("BINLOG-020", "BINLOG-027", "LOAD-023"), LEFT_OUT),
    **dict.fromkeys(("DUMP-002", "DUMP-006", "RELAY-016", "BINLOG-035"), FOLDER),
    "COMPARE-008": "test_the_progress_of_another_comparison_is_refused_until_its_file_is_removed",
    "COMPARE-018": "test_a_cut_over_as_it_is_typed",
    "BINLOG-038": "test_a_change_of_a_document_without_the_document",
    "COMPARE-001": "test_a_comparison_without_the_target_table",
    "CONFIG-008": "test_a_number_that_its_bits_do_not_hold_is_refused",
    "CONFIG-021": "test_a_column_that_a_ddl_takes_away_pauses_the_task",
    "DDL-011": "test_nothing_is_lost_across_the_rules",
    "DDL-012": "test_a_table_of_others_is_dropped",
    "DDL-034": "test_values_that_only_the_source_has_are_given_by_a_human",
    "DDL-047": "test_past_a_partition_that_has_other_rows_on_the_target",
    "LOAD-004": "test_the_target_table_has_another_shape",
    "LOAD-005": "test_shards_that_share_ids",
    "LOAD-006": "test_a_value_that_the_target_has_no_type_for_is_changed",
    "LOAD-019": "test_shards_that_share_ids",
    "LOAD-025": "test_what_an_attempt_that_was_forgotten_wrote_stops_the_next",
    "LOAD-026": "test_a_table_that_was_there_is_emptied_and_one_with_rows_of_others_kept",
    "LOAD-028": "test_a_dump_that_does_not_tell_its_time_zone",
    "LOAD-029": "test_a_dump_without_escapes",
    "RELAY-015": "test_a_source_that_was_reset",
    "RELAY-030": "test_a_dump_in_hand_is_of_one_server",
    "RELAY-032": "test_a_dump_in_hand_is_of_one_server",
    "SHARD-006": "test_an_owner_that_is_gone_needs_force",
    "SHARD-023": "test_rows_that_a_statement_takes_away_are_deleted_by_hand",
    "SHARD-030": "test_a_create_that_is_left_out_makes_nobody_wait",
    "SHARD-045": "test_a_table_that_the_target_can_not_take",
    "SHARD-048": "test_shards_without_a_key_that_differ",
    "SHARD-035": "test_the_task_stops_at_the_new_shard_and_gets_past_it",
    "SYNC-003": "test_a_row_of_others_is_removed",
    "SYNC-010": "test_a_target_table_that_goes_while_rows_come",
    **dict.fromkeys(("SYNC-017", "SYNC-018", "SYNC-032"), "test_rows_that_a_mapping_has_made_are_made_again"),
    "SYNC-046": "test_what_dm_left_unfinished_is_not_taken_over",
    "SYNC-061": "test_what_is_refused",
    "SYNC-084": "test_a_table_that_was_not_copied_stops_the_task_until_a_human_has_copied_it",
    "SYNC-067": "test_operators_for_the_binlog_of_the_server_before",
    **dict.fromkeys(("DUMP-014", "LOAD-008", "LOAD-020", "LOAD-022", "RELAY-010", "SHARD-029", "SYNC-006"), RESET),
    "SYNC-086": RESET,
    **dict.fromkeys(("BINLOG-021", "BINLOG-022", "BINLOG-034", "BINLOG-045", "BINLOG-046"), LOG),
    **dict.fromkeys(("RELAY-005", "RELAY-009"), LOG),
    **dict.fromkeys(("SYNC-030", "SYNC-044", "SYNC-047"), LOG),
    "RELAY-020": "test_gtids_that_are_purged",
}
"""By code, the test that follows the advice; codes of one cause in the advice share one."""
BY_HAND = {
    "BINLOG-032": "a transaction of more than a gigabyte; the reset is that of BINLOG-034",
    "LOAD-024": "a dump of another tool",
    "SHARD-005": "as SHARD-006, in the moment in which the owner runs the DDL",
    "SYNC-014": "a copy that an earlier version took",
    "SYNC-031": "no server of the tests logs such an INSERT",
    "SYNC-062": "a fail-over to a server that has lost prepared transactions; the reset is that of SYNC-061",
}
"""By code, why no test follows it."""
DRASTIC_CODES = [code for code, entry in CATALOGUE.items() if DRASTIC.search(entry.hint)]


def test_none_is_forgotten() -> None:
    assert WALKED.keys() & BY_HAND.keys() == set()
    assert set(DRASTIC_CODES) == WALKED.keys() | BY_HAND.keys()


@pytest.mark.parametrize("name", [RESET, LOG])
def test_the_cases_of_a_test_are_those_that_are_listed(name: str) -> None:
    """A code that shares a test with others stands in its table of cases."""
    (text,) = [path.read_text() for path in TESTS.rglob("test_*.py") if f"\ndef {name}(" in path.read_text()]
    table = text[text.index("\nRESET: ") : text.index("\n}\n", text.index("\nRESET: "))]
    cases = set(re.findall(r'"([A-Z]+-\d{3})"', table))
    assert cases == {code for code, walk in WALKED.items() if walk == name}


@pytest.mark.parametrize("name", sorted({*WALKED.values()}))
def test_it_is_there(name: str) -> None:
    found = [path for path in TESTS.rglob("test_*.py") if f"\ndef {name}(" in path.read_text()]
    assert len(found) == 1


def test_nobody_is_told_to_forget_the_records_alone() -> None:
    """Behind `--remove-meta` the rows of the copy are still there: LOAD-025 comes next."""
    assert [code for code, entry in CATALOGUE.items() if "remove-meta" in entry.hint] == []
