"""Pairs of source and target that whole tasks are tested on, and by subject the tests that run on each pair.

The suite `pairs` runs them. The table in docs/explanation/limits.md is `table()`, which a test holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SUBJECTS: Final = {
    "copy": (
        "tests/load/test_tables_with_rows.py",
        "tests/load/test_named_locks.py",
        "tests/load/test_folded_names.py",
        "tests/scenarios/test_starts.py",
        "tests/scenarios/test_reset_of_followed_tables.py",
    ),
    "rows": (
        "tests/scenarios/test_merge.py",
        "tests/scenarios/test_shapes.py",
        "tests/scenarios/test_unlike_targets.py",
        "tests/scenarios/test_delivery.py",
        "tests/scenarios/test_mapped_columns.py",
        "tests/scenarios/test_safe_mode_of_coarse_keys.py",
        "tests/sync/test_throttle.py",
        "tests/sync/test_error_values.py",
        "tests/sync/test_unaltered.py",
        "tests/sync/test_locked_upserts.py",
        "tests/sync/test_rows_of_stages.py",
        "tests/sync/test_hidden_values.py",
        "tests/target/test_waits.py",
        "tests/target/test_long_binlog_files.py",
        "tests/target/test_transactions_that_still_commit.py",
    ),
    "types": (
        "tests/scenarios/test_codes_of_characters.py",
        "tests/compare/test_repaired_types.py",
        "tests/validation/test_validated_types.py",
    ),
    "statements": (
        "tests/scenarios/test_statements.py",
        "tests/scenarios/test_partitions_with_other_rows.py",
        "tests/scenarios/test_renames.py",
        "tests/scenarios/test_names_in_two_cases.py",
        "tests/scenarios/test_databases_that_are_there.py",
        "tests/scenarios/test_online_ddl.py",
        "tests/scenarios/test_operators.py",
        "tests/scenarios/test_tracked_structures.py",
    ),
    "sharding DDL, pessimistic": (
        "tests/scenarios/test_shard_ddl.py",
        "tests/scenarios/test_sharding_ddl.py",
        "tests/recovery/test_sharding_deaths.py",
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
        "tests/scenarios/test_unread_shards.py",
        "tests/scenarios/test_optimistic_conflicts.py",
        "tests/recovery/test_optimistic_deaths.py",
    ),
    "deaths and cuts": (
        "tests/recovery/test_crash_points.py",
        "tests/recovery/test_failures.py",
        "tests/recovery/test_hard_life.py",
        "tests/recovery/test_network_faults.py",
        "tests/recovery/test_process_faults.py",
    ),
    "fail-over of the source": ("tests/recovery/test_failover.py", "tests/recovery/test_sharding_failover.py"),
    "a cluster": ("tests/cluster/test_a_killed_worker.py", "tests/cluster/test_plain_day.py"),
    "compare, repair, cut-over, backfill": (
        "tests/compare/test_compared_by_rules.py",
        "tests/compare/test_compare_repairs.py",
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
    ),
    "page, status, ctl, explain": (
        "tests/web/test_page_of_a_run.py",
        "tests/cli/test_status_command.py",
        "tests/ctl/test_without_a_master.py",
        "tests/explain/test_explained_runs.py",
    ),
    "random life": ("tests/scenarios/test_random_copies.py", "tests/scenarios/test_random_shards.py"),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """One kind of source with one kind of target.

    Attributes:
        source: a key of `support.source_servers.SOURCES`.
        target: a key of `support.target_servers.TARGETS`.
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


_UNDER_A_LOCK = "the copy from MySQL is under a lock, so no table is copied later than the others"
_UNSAFE = "MySQL refuses an ALTER that fills a column with random values or with the account"
_FOLDERS = "tests/scenarios/test_shard_ddl.py::test_the_merged_table_is_as_the_folder_says"
_VALUES = "tests/scenarios/test_optimistic_backfill.py::test_a_single_table_has_the_values_of_its_source"
_FROM_MYSQL: Final = (
    ("tests/recovery/test_sharding_deaths.py::test_deaths_between_statements_that_a_copy_has", _UNDER_A_LOCK),
    ("tests/recovery/test_sharding_failover.py::test_statements_that_a_copy_has_go_over_to_the_replica", _UNDER_A_LOCK),
    ("tests/scenarios/test_optimistic_copy.py::test_shards_are_altered_while_they_are_copied", _UNDER_A_LOCK),
    ("tests/scenarios/test_optimistic_copy.py::test_a_statement_for_all_shards_that_one_copy_has", _UNDER_A_LOCK),
    (
        "tests/scenarios/test_partitions_with_other_rows.py::test_rows_from_behind_the_statement_that_a_copy_brings",
        _UNDER_A_LOCK,
    ),
    (f"{_FOLDERS}[in_all_copies_of_one_source]", _UNDER_A_LOCK),
    (f"{_FOLDERS}[in_the_copy_what_cannot_be_kept]", _UNDER_A_LOCK),
    (f"{_FOLDERS}[while_the_dump_is_running]", _UNDER_A_LOCK),
    (f"{_FOLDERS}[sixty_four_tables_in_four_sources]", "MySQL has blocks of statements in procedures alone"),
    *((f"{_VALUES}[{mode}-ADD COLUMN {name}", _UNSAFE) for mode in ("optimistic", "") for name in "urw"),
    (
        "tests/scenarios/test_mapped_columns.py::test_a_shard_that_is_made_over_would_take_the_others_rows",
        "MySQL has no CREATE OR REPLACE TABLE",
    ),
)
_FROM_MYSQL_56: Final = (
    ("tests/compare/test_repaired_types.py", "MySQL 5.6 has no JSON"),
    ("tests/validation/test_validated_types.py", "MySQL 5.6 has no JSON"),
    (
        "tests/scenarios/test_optimistic_backfill.py::test_each_shard_keeps_the_time_of_its_own_statement",
        "MySQL 5.6 has no expressions as defaults",
    ),
    (
        "tests/scenarios/test_statements.py::test_statements_are_carried_with_the_rows_around_them",
        "MySQL 5.6 has no generated columns",
    ),
    (
        "tests/scenarios/test_operators.py::test_values_that_only_the_source_has_are_given_by_a_human",
        "MySQL 5.6 has no expressions as defaults",
    ),
    (
        "tests/scenarios/test_operators.py"
        "::test_the_rows_of_create_table_select_follow_where_an_operator_stands_for_it",
        "MySQL 5.6 with GTIDs refuses CREATE TABLE ... SELECT",
    ),
)
_FROM_MYSQL_INTO_MARIADB: Final = (
    ("tests/scenarios/test_operators.py::test_values_that_only_the_source_has_are_given_by_a_human", _UNSAFE),
    (
        "tests/scenarios/test_optimistic_ways_out.py::test_an_effect_that_is_not_computed",
        "MySQL has no application-time periods",
    ),
)
_INTO_TIDB: Final = (
    ("tests/scenarios/test_unlike_targets.py::test_rows_are_read_by_the_sources_columns[charset", "TiDB has no cp850"),
    (
        "tests/scenarios/test_statements.py::test_statements_are_carried_with_the_rows_around_them",
        "TiDB adds no AUTO_INCREMENT column to a table",
    ),
    (
        "tests/scenarios/test_operators.py::test_values_that_only_the_source_has_are_given_by_a_human",
        "TiDB drops no primary key by which it stores the rows",
    ),
    (
        "tests/compare/test_compare_repairs.py::test_a_row_that_the_target_refuses_is_told_and_the_others_are_repaired",
        "TiDB has no triggers",
    ),
    (
        "tests/sync/test_unaltered.py::test_what_a_target_changes_without_a_word_is_refused[what fails would stay]",
        "TiDB has no engines without transactions",
    ),
    (
        "tests/target/test_waits.py::test_who_waits_for_another_source_of_the_task_is_told_so",
        "rows are written to TiDB without locks, so no source waits for another",
    ),
    (
        "tests/target/test_waits.py::test_a_statement_of_ours_that_waits_for_a_transaction_is_told",
        "a DDL of TiDB waits as a job, which the suite `tidb` tests",
    ),
    (
        "tests/target/test_waits.py::test_a_statement_of_rows_that_waits_for_a_table_is_told",
        "TiDB has no LOCK TABLES",
    ),
)


def _pair(source: str, target: str, subjects: tuple[str, ...]) -> Pair:
    """Return the pair, without the tests of its subjects that its servers can't run."""
    left_out = (
        *(_FROM_MYSQL if source != "mariadb" else ()),
        *(_FROM_MYSQL_56 if source == "mysql-5.6" else ()),
        *(_FROM_MYSQL_INTO_MARIADB if source != "mariadb" and target == "mariadb" else ()),
        *(_INTO_TIDB if target == "tidb" else ()),
    )
    paths = {path for subject in subjects for path in SUBJECTS[subject]}
    return Pair(source, target, subjects, tuple(one for one in left_out if one[0].partition("::")[0] in paths))


_ALL = tuple(SUBJECTS)
_IN_ONE_PROCESS = ("copy", "rows", "types", "statements", "sharding DDL, pessimistic", "sharding DDL, optimistic")
PAIRS: Final = (
    _pair("mysql-8.0", "tidb", _ALL),
    _pair("mysql-5.6", "tidb", _IN_ONE_PROCESS),
    _pair("mysql-9.7", "tidb", _IN_ONE_PROCESS),
    _pair("mysql-5.6", "mysql-8.0", ("copy", "rows", "statements")),
    _pair("mysql-8.0", "mariadb", _ALL),
    _pair("mariadb", "tidb", _ALL),
)
"""In the order in which the suite runs them. From MariaDB into MariaDB all tests run, in the other suites."""

_SHOWN: Final = {
    "mariadb": "MariaDB",
    "mysql-5.6": "MySQL 5.6",
    "mysql-8.0": "MySQL 8.0",
    "mysql-9.7": "MySQL 9.7",
    "tidb": "TiDB",
}


def table() -> str:
    """Return the table of the documents: subjects by pairs, and the tests that are left out."""
    heads = [f"{_SHOWN[pair.source]} into {_SHOWN[pair.target]}" for pair in PAIRS]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    lines += [
        f"| {subject} | " + " | ".join("yes" if subject in pair.subjects else "no" for pair in PAIRS) + " |"
        for subject in SUBJECTS
    ]
    for words, left_out in (
        ("From MySQL", _FROM_MYSQL),
        ("From MySQL 5.6", _FROM_MYSQL_56),
        ("From MySQL into MariaDB", _FROM_MYSQL_INTO_MARIADB),
        ("Into TiDB", _INTO_TIDB),
    ):
        by_reason: dict[str, list[str]] = {}
        for test, why in left_out:
            by_reason.setdefault(why, []).append(f"`{test.rpartition('/')[2]}`")
        lines += ["", f"{words} these tests of the subjects are left out:", ""]
        lines += [f"* {why}: {', '.join(tests)}" for why, tests in by_reason.items()]
    return "\n".join(lines) + "\n"
