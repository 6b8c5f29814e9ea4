"""`python -m bench.report [--size quick] [--into report] [PART …]`: runs the parts, writes `report.html` and
`report.json`, and prints progress.

Both files are written anew after each part, so a report that is stopped keeps what it has. The exit code is 1 if a part
failed or a matrix has a cell that is wrong; a part that is left out does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from bench.report.machine import describe
from bench.report.page import page
from bench.report.parts import LEFT_OUT, PARTS, Part
from bench.report.size import SIZES, Size

_TOLD_LINES = 15


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.report", description="Measure and prove all, in one report.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: all: {', '.join(p.name for p in PARTS)}")
    parser.add_argument("--size", choices=SIZES, default="full", help="quick: a first look in a few minutes")
    parser.add_argument("--into", type=Path, default=Path("report"), help="the folder of report.html and report.json")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that a part never outlives it
    known = {part.name: part for part in PARTS}
    if unknown := set(arguments.parts) - set(known):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    chosen = [known[name] for name in arguments.parts] or list(PARTS)
    sys.exit(make(chosen, SIZES[arguments.size], arguments.into))


def make(parts: list[Part], size: Size, into: Path) -> int:
    """Run the parts and write both files into the folder. Returns the exit code."""
    into.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    report: dict[str, Any] = {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "size": size.name,
        "machine": describe(),
        "parts": {},
    }
    for number, part in enumerate(parts, 1):
        if time.monotonic() - begun > 60 * size.minutes:
            found = {"state": "left out", "reason": f"{size.minutes} minutes were over", "seconds": 0}
        else:
            print(f"[{number}/{len(parts)}] {part.title} …", flush=True)
            found = run(part, size)
        report["parts"][part.name] = {"title": part.title, **found}
        print(f"[{number}/{len(parts)}] {part.title}: {found['state']} ({found['seconds']} s){_why(found)}", flush=True)
        report["seconds"] = round(time.monotonic() - begun)
        _write(report, into)
    print(into / "report.html", into / "report.json", sep="\n")
    return int(any(_is_wrong(found) for found in report["parts"].values()))


def run(part: Part, size: Size) -> dict[str, Any]:
    """Run a part in a process group of its own. Returns `{"state", "seconds"}` with `result` or `reason`.

    `state` is `done`, `left out` or `failed`.
    """
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="unshard-report-") as folder:
        into, log = Path(folder) / "result.json", Path(folder) / "log"
        with log.open("wb") as sink:
            command = [sys.executable, "-m", "bench.report.parts", part.name, size.name, str(into)]
            child = subprocess.Popen(
                [*_apart(), *command], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
            )
            code = _follow(child, log, 60 * part.minutes)
        seconds = round(time.monotonic() - begun)
        if code == 0:
            return {"state": "done", "seconds": seconds, "result": json.loads(into.read_text())}
        if code == LEFT_OUT and into.exists():
            return {"state": "left out", "seconds": seconds, "reason": json.loads(into.read_text())}
        ended = f"stopped after {part.minutes} minutes" if code is None else f"ended with {code}"
        told = log.read_text(errors="replace").splitlines()[-_TOLD_LINES:]
        return {"state": "failed", "seconds": seconds, "reason": "\n".join((ended, *told))}


def _follow(child: subprocess.Popen[bytes], log: Path, seconds: float) -> int | None:
    """Wait for the process, and print its lines of progress. Returns its exit code, None if the time was over."""
    deadline, printed = time.monotonic() + seconds, 0
    try:
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
            lines = log.read_text(errors="replace").splitlines(keepends=True)
            for line in lines[printed:]:
                if not line.endswith("\n"):
                    break
                printed += 1
                if line.startswith("  "):
                    print(line, end="", flush=True)
        return child.poll()
    finally:
        if child.poll() is None:
            end_all(child)


def end_all(child: subprocess.Popen[Any]) -> None:
    """Kill a part and all that it has started, also tasks, which have process groups of their own."""
    below = psutil.Process(child.pid).children(recursive=True)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for process in below:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _apart() -> list[str]:
    """Return the command that gives a part its own view of mounts, which ends with it; none without root."""
    if os.geteuid():
        return []
    command = ["unshare", "--mount", "--propagation", "private"]
    try:
        allowed = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return []
    return [*command, "env", "UNSHARD_OWN_MOUNTS=1"] if allowed else []


def _why(found: dict[str, Any]) -> str:
    return f": {found['reason'].splitlines()[0]}" if "reason" in found else ""


def _is_wrong(found: dict[str, Any]) -> bool:
    return found["state"] == "failed" or (found["state"] == "done" and bool(found["result"].get("wrong")))


def _write(report: dict[str, Any], into: Path) -> None:
    for name, text in (("report.json", json.dumps(report, indent=1)), ("report.html", page(report))):
        part = into / f"{name}.part"
        part.write_text(text)
        part.replace(into / name)


if __name__ == "__main__":
    main()
