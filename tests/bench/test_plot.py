from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.plot import draw, ratios, saved

DECODE = {"bulk": {"rows_per_s": 5, "x_native": 2.5, "x_python": 93.0}, "memory": {"file_mb": [1, 10]}}
LOAD = {"load_s": 2.4, "x_native": 0.8}


def test_ratios_are_found_at_any_depth() -> None:
    assert list(ratios(DECODE)) == [("bulk.x_native", 2.5), ("bulk.x_python", 93.0)]


def test_saved_results_of_one_bench_and_of_all(tmp_path: Path) -> None:
    one, every = tmp_path / "decode.json", tmp_path / "all.json"
    one.write_text(json.dumps(DECODE, indent=2))
    every.write_text(f"{json.dumps({'decode': DECODE})}\n{json.dumps({'load': LOAD})}\n")

    assert saved(one) == {"decode": DECODE}
    assert saved(every) == {"decode": DECODE, "load": LOAD}


def test_results_without_a_ratio_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latency.json").write_text('{"p50_ms": 140}')
    with pytest.raises(ValueError, match="no ratio"):
        saved(tmp_path / "latency.json")


def test_both_pictures_show_every_ratio(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"decode": DECODE}) + "\n" + json.dumps({"load": LOAD}))

    png, svg = draw([tmp_path / "r.json"], tmp_path / "chart")

    assert png.read_bytes().startswith(b"\x89PNG\r\n")
    text = svg.read_text()
    for shown in ("decode.bulk.x_native", "2.50", "decode.bulk.x_python", "93.00", "load.x_native", "0.80"):
        assert f">{shown}<" in text


def test_it_runs_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "load.json").write_text(json.dumps(LOAD, indent=2))
    command = [sys.executable, "-m", "bench", "plot", str(tmp_path / "load.json")]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.stdout.split() == [str(tmp_path / "load.png"), str(tmp_path / "load.svg")]
    assert (tmp_path / "load.svg").exists()
