"""One Spark cluster of processes for this folder: a master, two workers, and a Spark Connect server on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unshard.spark.session import archive_options, class_archive
from unshard.testing.spark_cluster import SparkCluster, SparkProcess


@pytest.fixture(scope="session")
def cluster() -> Iterator[SparkCluster]:
    with SparkCluster(java_options=archive_options(class_archive())) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def events_conf(cluster: SparkCluster) -> dict[str, str]:
    """Settings with which Spark keeps all that its pages show in plain files, in the cluster's folder."""
    folder = cluster.folder / "events"
    folder.mkdir(exist_ok=True)
    return {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.dir": str(folder)}


@pytest.fixture(scope="session")
def connect_server(cluster: SparkCluster, events_conf: dict[str, str]) -> SparkProcess:
    """Ended with the cluster."""
    return cluster.connect_server(events_conf)
