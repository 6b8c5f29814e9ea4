"""The text for Prometheus, read back by its own client; the counts that come home from Spark's tasks."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from unshard.log import fields
from unshard.metrics.events import EventCounters, count_own
from unshard.metrics.registry import METRICS
from unshard.metrics.sample import Distribution, Histogram, Sample, exposition

OWN = {"task": "t", "source_id": "s"}
TABLE = {**OWN, "target_schema": "d"}
LAG = "unshard_sync_table_lag_seconds"


def read(samples: list[Sample]) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    found = {}
    for family in text_string_to_metric_families(exposition(samples).decode()):
        for sample in family.samples:
            found[sample.name, frozenset(sample.labels.items())] = sample.value
    return found


def test_names_of_any_kind_come_back_as_they_were() -> None:
    names = ['quo"te', "back\\slash", "line\nbreak", "`tick`", "表", "x" * 64, "brace}", "a=b,c", ""]
    found = read([Sample(LAG, {**TABLE, "target_table": name}, place + 0.5) for place, name in enumerate(names)])
    expected = {
        (LAG, frozenset({**TABLE, "target_table": name}.items())): place + 0.5 for place, name in enumerate(names)
    }
    assert found == expected


def test_a_name_that_is_no_text_breaks_nothing() -> None:
    (value,) = read([Sample(LAG, {**TABLE, "target_table": "a\udcffb"}, 3)]).values()
    assert value == 3


def test_a_histogram_adds_up_its_buckets() -> None:
    histogram = Histogram(METRICS["unshard_sync_batch_seconds"].buckets)
    for value in (0.01, 0.05, 0.3, 1000.0):
        histogram.observe(value)
    found = read([Sample("unshard_sync_batch_seconds", OWN, histogram.read())])

    def bucket(bound: str) -> float:
        return found["unshard_sync_batch_seconds_bucket", frozenset({**OWN, "le": bound}.items())]

    assert [bucket(bound) for bound in ("0.05", "0.2", "0.4", "120", "+Inf")] == [2, 2, 3, 3, 4]
    assert found["unshard_sync_batch_seconds_sum", frozenset(OWN.items())] == pytest.approx(1000.36)
    assert found["unshard_sync_batch_seconds_count", frozenset(OWN.items())] == 4


def test_an_empty_histogram_and_large_counts_are_numbers() -> None:
    none = Distribution((0,) * (len(METRICS["unshard_sync_batch_seconds"].buckets) + 1), 0.0)
    found = read([Sample("unshard_sync_batch_seconds", OWN, none), Sample("unshard_sync_bytes_total", OWN, 2**60)])
    assert found["unshard_sync_bytes_total", frozenset(OWN.items())] == 2**60


@pytest.mark.parametrize(
    "sample", [Sample("unshard_sync_bytes_total", {"task": "t"}, 1), Sample("not_a_metric", {}, 1)]
)
def test_what_the_registry_does_not_have_is_a_bug(sample: Sample) -> None:
    with pytest.raises(LookupError):
        exposition([sample])


def test_what_a_task_of_spark_counted_is_its_callers() -> None:
    there, here = EventCounters(), EventCounters()
    there.count("unshard_retries_total", 2, task="", source_id="")
    there.count("unshard_retries_total", task="known", source_id="k")
    with fields(task="t", source="s"):
        here.bring_home(there.take())
        here.bring_home(there.take())
    assert here.value("unshard_retries_total", **OWN) == 2
    assert here.value("unshard_retries_total", task="known", source_id="k") == 1
    here.forget(task="t")
    assert here.value("unshard_retries_total", **OWN) == 0


def test_own_counts_are_those_of_the_thread_s_task(monkeypatch: pytest.MonkeyPatch) -> None:
    events = EventCounters()
    monkeypatch.setattr("unshard.metrics.events.EVENTS", events)
    with fields(task="t", source="s", worker="w"):
        count_own("dm_syncer_exit_with_error_count", resumable_err="true")
    count_own("unshard_retries_total", 0.5)
    assert events.value("dm_syncer_exit_with_error_count", **OWN, resumable_err="true") == 1
    assert events.value("unshard_retries_total", task="", source_id="") == 0.5
