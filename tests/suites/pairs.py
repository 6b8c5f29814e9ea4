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
        "tests/scenarios/test_delivery.py",
        "tests/scenarios/test_mapped_columns.py",
        "tests/scenarios/test_safe_mode_of_coarse_keys.py",
        "tests/sync/test_throttle.py",
        "tests/sync/test_error_values.py",
        "tests/sync/test_locked_upserts.py",
        "tests/target/test_waits.py",
    ),
    "types": (
        "tests/scenarios/test_codes_of_characters.py",
        "tests/compare/test_repaired_types.py",
        "tests/validation/test_validated_types.py",
    ),
    "statements": (
        "tests/scenarios/test_statements.py",
        "tests/scenarios/test_renames.py",
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


_UNDER_A_LOCK = "the copy from MySQL is under a lock, so no table is copied later than the others"
_FROM_MYSQL: Final = (
    ("tests/recovery/test_sharding_deaths.py::test_deaths_between_statements_that_a_copy_has", _UNDER_A_LOCK),
    ("tests/recovery/test_sharding_failover.py::test_statements_that_a_copy_has_go_over_to_the_replica", _UNDER_A_LOCK),
    ("tests/scenarios/test_optimistic_copy.py::test_shards_are_altered_while_they_are_copied", _UNDER_A_LOCK),
    (
        "tests/scenarios/test_mapped_columns.py::test_a_shard_that_is_made_over_would_take_the_others_rows",
        "MySQL has no CREATE OR REPLACE TABLE",
    ),
)


def _from_mysql(source: str, target: str, subjects: tuple[str, ...]) -> Pair:
    paths = Pair(source, target, subjects).paths
    return Pair(source, target, subjects, tuple(one for one in _FROM_MYSQL if one[0].partition("::")[0] in paths))


_ALL = tuple(SUBJECTS)
_IN_ONE_PROCESS = ("copy", "rows", "types", "statements", "sharding DDL, pessimistic", "sharding DDL, optimistic")
PAIRS: Final = (
    _from_mysql("mysql-8.0", "tidb", _ALL),
    _from_mysql("mysql-5.6", "tidb", _IN_ONE_PROCESS),
    _from_mysql("mysql-9.7", "tidb", _IN_ONE_PROCESS),
    Pair("mariadb", "tidb", _ALL),
    _from_mysql("mysql-8.0", "mariadb", _ALL),
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
