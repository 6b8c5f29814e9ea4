"""The archive of Spark's classes: sessions start from it, and one that is of no use is left alone without a word."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from unshard.spark.class_archive import is_used
from unshard.spark.session import archive_options, class_archive


@pytest.mark.spark
def test_a_session_starts_from_the_archive(spark: SparkSession) -> None:
    jvm = spark.sparkContext._gateway.proc.pid
    is_mapped = str(class_archive()) in Path(f"/proc/{jvm}/maps").read_text()
    assert is_mapped == class_archive().exists()
    assert is_mapped or java_release() >= 21, "make setup writes it"


def java_release() -> int:
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    return int(re.findall(r'version "(\d+)', told)[0])


def test_without_an_archive_there_are_no_switches(tmp_path: Path) -> None:
    assert archive_options(tmp_path / "none.jsa") == ""


@pytest.mark.parametrize("content", [b"", b"no archive at all"])
def test_java_leaves_a_bad_archive_alone(tmp_path: Path, content: bytes) -> None:
    archive = tmp_path / "bad.jsa"
    archive.write_bytes(content)
    plain = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    with_it = subprocess.run(
        ["java", *archive_options(archive).split(), "-version"], capture_output=True, text=True, check=True
    )
    assert with_it.stdout == plain.stdout == ""
    assert with_it.stderr == plain.stderr.replace(", sharing", "")  # it says nothing but how it runs


def test_an_archive_that_java_refuses_is_of_no_use(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsa"
    bad.write_bytes(b"no archive at all")
    assert not is_used(bad)


def test_an_archive_that_the_environment_has_is_used() -> None:
    assert is_used(class_archive()) == class_archive().exists()


def test_java_leaves_the_archive_of_another_class_path_alone(tmp_path: Path) -> None:
    switches = [*archive_options(class_archive()).split(), "-cp", str(tmp_path)]
    started = subprocess.run(["java", *switches, "-version"], capture_output=True, text=True, check=True)
    assert started.stdout == ""
    assert "archive" not in started.stderr
