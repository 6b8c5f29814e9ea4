"""Pairs of source and target that whole tasks are tested on, and by subject the tests that run on each pair.

The suite `pairs` runs them. The table in docs/explanation/limits.md is `table()`, which a test holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_FOLDERS = "tests/scenarios/test_shard_ddl.py::test_the_merged_table_is_as_the_folder_says"
SUBJECTS: Final = {
    "copy": (
        "tests/load/test_tables_with_rows.py",
        "tests/load/test_named_locks.py",
        "tests/load/test_folded_names.py",
        "tests/scenarios/test_reset_of_followed_tables.py",
    ),
    "rows": (
        "tests/scenarios/test_delivery.py::test_an_error_leaves_an_exit_point_and_safe_mode_ends_there",
        "tests/scenarios/test_delivery.py::test_exactly_once_stays_in_safe_mode_over_restarts_until_the_exit_point",
        "tests/scenarios/test_mapped_columns.py::test_a_new_shard_that_is_made_like_another",
        "tests/scenarios/test_mapped_columns.py::test_a_text_that_gets_too_long_is_told_with_its_event_and_mended",
        "tests/scenarios/test_mapped_columns.py::test_an_id_out_of_range_and_a_statement_on_a_mapped_column",
        "tests/sync/test_throttle.py",
        "tests/sync/test_error_values.py",
        "tests/sync/test_locked_upserts.py",
        "tests/scenarios/test_safe_mode_of_coarse_keys.py",
        "tests/target/test_waits.py::test_who_holds_a_row_is_named_until_it_is_free",
    ),
    "statements": (
        "tests/scenarios/test_online_ddl.py::test_the_table_is_altered_at_the_cut_over_after_a_restart",
        "tests/scenarios/test_operators.py::test_the_command_that_the_error_prints_gets_past_the_statement",
    ),
    "sharding DDL, pessimistic": (
        *(f"{_FOLDERS}[{name}]" for name in (
            "in_the_copy_what_cannot_be_kept", "in_the_middle_of_a_transaction_load", "many_sources_many_tables",
            "one_source_never_gets_the_ddl", "rename_within_the_group", "while_the_load_is_running",
        )),
        "tests/recovery/test_sharding_deaths.py::"
        "test_an_owner_that_dies_in_its_ddl_and_is_taken_out_of_the_task_comes_back",
    ),
    "sharding DDL, optimistic": (
        "tests/scenarios/test_optimistic_shards.py",
        "tests/scenarios/test_optimistic_starts.py",
        "tests/scenarios/test_optimistic_steps.py",
        "tests/scenarios/test_optimistic_strict.py",
        "tests/scenarios/test_optimistic_ways_out.py",
        "tests/scenarios/test_optimistic_backfill.py",
        "tests/scenarios/test_optimistic_copy.py",
        "tests/scenarios/test_optimistic_events.py",
        "tests/scenarios/test_optimistic_members.py",
        "tests/scenarios/test_optimistic_conflicts.py",
        "tests/recovery/test_optimistic_deaths.py",
    ),
    "deaths of the target": (
        "tests/recovery/test_failures.py::test_a_restarted_target_is_waited_for",
        "tests/recovery/test_failures.py::test_a_target_that_dies_in_the_middle_of_a_batch",
    ),
    "compare, repair, cut-over, backfill": (
        "tests/compare/test_compared_by_rules.py",
        "tests/compare/test_compare_repairs.py::test_the_target_is_equal_afterwards",
        "tests/compare/test_compare_repairs.py::test_a_task_that_is_stopped_and_has_all",
        "tests/compare/test_compare_repairs.py::test_a_task_that_is_stopped_and_has_not_all_is_left_alone",
        "tests/compare/test_compare_repairs.py::test_writers_that_never_rest",
        "tests/compare/test_compare_repairs.py::test_what_is_typed",
        "tests/compare/test_compare_repairs.py::test_nothing_is_repaired_while_a_ddl_of_merged_tables_waits",
        "tests/compare/test_compare_repairs.py::test_a_commit_whose_answer_is_lost_is_not_done_again",
        "tests/compare/test_compare_repairs.py::test_a_task_that_delivers_at_least_once_is_left_alone",
        "tests/compare/test_compare_repairs.py::test_a_task_that_only_copies",
        "tests/compare/test_repaired_types.py",
        "tests/compare/test_compare_bad_input.py",
        "tests/compare/test_cutover.py",
        "tests/compare/test_killed_cutover.py",
        "tests/compare/test_killed_repair.py",
        "tests/scenarios/test_backfill.py",
    ),
    "validation": (
        "tests/validation/test_loaded_rows.py",
        "tests/validation/test_validated_rows.py",
        "tests/validation/test_validated_shards.py",
        "tests/validation/test_validated_types.py",
    ),
    "page and status": ("tests/web/test_page_of_a_run.py", "tests/cli/test_status_command.py"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """One kind of source with one kind of target.

    Attributes:
        source: a key of `support.source_servers.SOURCES`.
        target: `mariadb` or `tidb`, what UNSHARD_TEST_TARGET takes.
        subjects: those of `SUBJECTS` whose tests run on it.
        without: tests of these subjects that can't run on it, with the reason.
    """

    source: str
    target: str
    subjects: tuple[str, ...]
    without: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for subject in self.subjects for path in SUBJECTS[subject])

    @property
    def environment(self) -> tuple[tuple[str, str], ...]:
        return ("UNSHARD_TEST_SOURCE", self.source), ("UNSHARD_TEST_TARGET", self.target)


PAIRS: Final = (Pair("mariadb", "tidb", tuple(SUBJECTS)),)
"""In the order in which the suite runs them. From MariaDB into MariaDB all tests run, in the other suites."""

_SHOWN: Final = {
    "mariadb": "MariaDB",
    "mysql-5.6": "MySQL 5.6",
    "mysql-8.0": "MySQL 8.0",
    "mysql-9.7": "MySQL 9.7",
    "tidb": "TiDB",
}


def table() -> str:
    """Return the table of the documents: subjects by pairs, and what a pair leaves out."""
    heads = [f"{_SHOWN[pair.source]} into {_SHOWN[pair.target]}" for pair in PAIRS]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    lines += [
        f"| {subject} | " + " | ".join("yes" if subject in pair.subjects else "no" for pair in PAIRS) + " |"
        for subject in SUBJECTS
    ]
    left_out = [
        f"* {head}, without `{test.rpartition('/')[2]}`: {why}"
        for head, pair in zip(heads, PAIRS, strict=True)
        for test, why in pair.without
    ]
    return "\n".join([*lines, *([""] if left_out else []), *left_out]) + "\n"
