"""Servers that are replaced or restarted while they are compared: the answer is right, or there is none."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, kinds, only_table, state_file
from support.cutovers import Trial, merged_tables
from support.replicas import Pair, replicated
from support.task_runs import TaskRun
from support.waiting import wait_until
from unshard.errors import CompareError
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with replicated() as pair:
        yield pair


@pytest.fixture
def own_target() -> Iterator[MariadbServer]:
    with MariadbServer() as server:
        yield server


def test_a_source_that_fails_over_during_a_cut_over_ends_it_and_the_next_one_is_right(
    pair: Pair,
    second_source: MariadbServer,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    with (
        FaultProxy("127.0.0.1", pair.primary.port) as proxy,
        merged_tables((pair.primary, second_source), target_server, schema, tmp_path) as files,
    ):
        path = files.folder / "s1.yaml"
        path.write_text("enable-gtid: true\n" + path.read_text().replace(str(pair.primary.port), str(proxy.port)))
        with TaskRun(files, spark) as run:
            run.catch_up()

            def fail_over() -> None:
                pair.promote()
                proxy.lead_to("127.0.0.1", pair.replica.port)

            with pytest.raises(CompareError, match="COMPARE-015") as told:
                Trial(files, spark, after=fail_over).run()
            assert told.value.where.source == "s1"
            pair.replica.run(f"UPDATE {schema}.t_1 SET v = -1 WHERE id = 1001")
            moved = replace(files, sources={**files.sources, "s1": pair.replica})
            run.files = moved
            run.catch_up()
            target_server.run(f"UPDATE {schema}.t SET v = 7 WHERE id = 1050")
            proof = Trial(moved, spark).run()
            assert proof is not None
            assert kinds(only_table(proof.outcome)) == {"id=1050": "changed"}
        pair.primary.start()  # what drops its database at the end finds it


def test_a_target_that_restarts_during_a_comparison_is_read_again(
    source_server: MariadbServer,
    second_source: MariadbServer,
    own_target: MariadbServer,
    schema: str,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    with merged_tables((source_server, second_source), own_target, schema, tmp_path) as files:
        with TaskRun(files, spark) as run:
            run.catch_up()
        own_target.run(f"DELETE FROM {schema}.t WHERE id = 2040")
        state = state_file(tmp_path)

        def ranges() -> int:
            return state.read_text().count('"table"') if state.exists() else 0

        with ThreadPoolExecutor() as threads:
            found = threads.submit(compared, files, spark, state=state, chunk_rows=10, connections=1)
            wait_until(lambda: ranges() > 0, "a range is compared")
            own_target.kill()
            done = ranges()
            own_target.start()
            outcome = found.result()
        table = only_table(outcome)
        assert 0 < done < table.chunks, "it restarted between two ranges"
        assert (outcome.exit_code, kinds(table)) == (1, {"id=2040": "missing"}), outcome.to_dict()
