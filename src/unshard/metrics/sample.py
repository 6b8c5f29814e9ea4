"""Samples, and Prometheus' text format for them; samples of this process, its version, and the free space of a disk."""

from __future__ import annotations

import math
import os
import resource
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock

from unshard.metrics.metric import Metric
from unshard.metrics.registry import METRICS

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Distribution:
    """The values of a histogram: the count in each bucket, and the sum of the values.

    Counts are not cumulated; the last one is of values beyond all bounds.
    """

    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Sample:
    """The current value of one series. `labels` are exactly those of the metric."""

    name: str
    labels: Mapping[str, str]
    value: float | Distribution


@dataclass(slots=True)
class Histogram:
    """A histogram, which counts values by bucket. Any thread may write and read."""

    buckets: Sequence[float]
    _counts: list[int] = field(init=False)
    _total: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._counts = [0] * (len(self.buckets) + 1)

    def observe(self, value: float) -> None:
        """Count one value in its bucket."""
        place = next((place for place, bound in enumerate(self.buckets) if value <= bound), len(self.buckets))
        with self._lock:
            self._counts[place] += 1
            self._total += value

    def read(self) -> Distribution:
        """Return the counts so far."""
        with self._lock:
            return Distribution(tuple(self._counts), self._total)


def exposition(samples: Iterable[Sample]) -> bytes:
    """Return the samples in Prometheus' text format, with metrics in the registry's order, each with its help.

    Raises LookupError for a sample that the registry lacks, or has with other labels, which is a bug.
    """
    found: dict[str, dict[tuple[str, ...], float | Distribution]] = {}
    for sample in samples:
        metric = METRICS[sample.name]
        if set(sample.labels) != set(metric.labels):
            raise LookupError(f"{sample.name} has labels {metric.labels}, not {tuple(sample.labels)}")
        key = tuple(sample.labels[name] for name in metric.labels)
        found.setdefault(sample.name, {})[key] = sample.value
    lines: list[str] = []
    for name, metric in METRICS.items():
        if name in found:
            lines += [f"# HELP {name} {_help(metric.help)}", f"# TYPE {name} {metric.kind}"]
            for values, value in found[name].items():
                lines += _series(metric, dict(zip(metric.labels, values, strict=True)), value)
    return ("\n".join(lines) + "\n").encode()


def _series(metric: Metric, labels: Mapping[str, str], value: float | Distribution) -> list[str]:
    if not isinstance(value, Distribution):
        return [f"{metric.name}{_labels(labels)} {_number(value)}"]
    lines, count = [], 0
    for bound, here in zip((*metric.buckets, math.inf), value.counts, strict=True):
        count += here
        lines.append(f"{metric.name}_bucket{_labels({**labels, 'le': _number(bound)})} {count}")
    lines.append(f"{metric.name}_sum{_labels(labels)} {_number(value.total)}")
    lines.append(f"{metric.name}_count{_labels(labels)} {count}")
    return lines


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    """Return an escaped label value. Even a name that is no valid text (a lone surrogate) must not break the page."""
    whole = value.encode(errors="replace").decode()
    return whole.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", " ")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


_BEGUN = time.time()
_STATM = Path("/proc/self/statm")


def process_samples() -> Iterator[Sample]:
    """Yield samples of the process's current state."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield Sample("unshard_build_info", {"version": own_version()}, 1)
    yield Sample("process_cpu_seconds_total", {}, used.ru_utime + used.ru_stime)
    yield Sample("process_start_time_seconds", {}, _BEGUN)
    if _STATM.exists():
        pages = int(_STATM.read_text().split()[1])
        yield Sample("process_resident_memory_bytes", {}, pages * os.sysconf("SC_PAGE_SIZE"))


def free_share(folder: Path) -> float | None:
    """Return the free share, from 0 to 1, of the disk that has the folder or will have it; None if it is unknown."""
    try:
        there = next(one for one in (folder, *folder.parents) if one.exists())
        space = shutil.disk_usage(there)
    except OSError:
        return None
    return space.free / space.total if space.total else None


@cache
def own_version() -> str:
    """Return the version of this installation."""
    try:
        return version("unshard")
    except PackageNotFoundError:
        return "unknown"
