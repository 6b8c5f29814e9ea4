"""The log: fields on every line, both forms, what is hidden, how much is written."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import structlog

from support.waiting import wait_until
from unshard import log
from unshard.errors import ConfigError
from unshard.log import rotation
from unshard.log.lines import Sampler
from unshard.log.redaction import redacted
from unshard.log.ring import RING
from unshard.log.rotation import KEPT_SECONDS, RotatingFile, kept_small

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    ours = logging.getLogger("unshard")
    kept = ours.handlers[:], ours.level, ours.propagate
    ours.handlers[:] = []
    yield tmp_path / "logs" / "unshard.log"
    for handler in ours.handlers:
        handler.close()
    ours.handlers[:], ours.propagate = kept[0], kept[2]
    ours.setLevel(kept[1])


@pytest.fixture
def lines(path: Path) -> Lines:
    log.configure(log.LogSettings(path))
    return lambda: [json.loads(line) for line in path.read_text().splitlines()]


def test_every_line_of_a_thread_has_its_fields(lines: Lines) -> None:
    def work() -> None:
        log.logger("sync").info("outside")
        with log.fields(task="t", source="s1"), log.fields(batch="3/7"):
            log.logger("sync", table="a.b").warning("inside", rows=3)

    thread = Thread(target=work)
    with log.fields(task="another"):
        thread.start()
        thread.join()
    outside, inside = lines()
    assert "task" not in outside
    assert list(inside)[:7] == ["timestamp", "level", "logger", "event", "task", "source", "batch"]
    assert inside | {"timestamp": ""} == {
        "timestamp": "",
        "level": "warning",
        "logger": "sync",
        "event": "inside",
        "task": "t",
        "source": "s1",
        "batch": "3/7",
        "table": "a.b",
        "rows": 3,
    }


def test_the_level_changes_at_run_time(lines: Lines) -> None:
    kept = log.logger("relay")
    kept.debug("one")
    log.set_level("debug")
    kept.debug("two")
    log.set_level("WARNING")
    kept.info("three")
    assert log.level() == "warn"
    assert [line["event"] for line in lines()] == ["log level set", "two"]
    with pytest.raises(ValueError, match="no such log level: 'loud'; there are debug, info, warn, error"):
        log.set_level("loud")


def test_lines_of_the_web_server_are_in_it_too(lines: Lines) -> None:
    logging.getLogger("uvicorn.error").info("listening on %s", "127.0.0.1:8261")
    (line,) = lines()
    assert (line["logger"], line["event"]) == ("uvicorn.error", "listening on 127.0.0.1:8261")


def test_the_text_form_is_that_of_tidb(path: Path) -> None:
    log.configure(log.LogSettings(path, form="text"))
    log.logger("sync", source="s1").warning("found no row", changes=3, why='a "b"\nc', where={"table": "d.t"})
    stamp, _, rest = path.read_text().rstrip("\n").partition("] ")
    assert len(stamp) == len("[2026/11/21 10:00:00.123 +00:00")
    assert rest == (
        r'[WARN] [sync] ["found no row"] [source=s1] [changes=3] [why="a \"b\"\nc"] [where="{\"table\": \"d.t\"}"]'
    )


def test_a_fault_is_written_with_its_traceback_on_one_line(lines: Lines) -> None:
    try:
        raise KeyError("x")
    except KeyError:
        log.logger("run").exception("failed by a bug")
    assert "KeyError" in lines()[0]["exception"]


def test_values_are_redacted_where_it_is_asked_for(path: Path) -> None:
    log.configure(log.LogSettings(path, redact=True))
    sql = "UPDATE `t1`.`a'b` SET c = 'it''s', d=-3.5, e = x'00ff' WHERE id = 17"
    error = {"code": "SYNC-003", "cause": "1062 Duplicate entry 'ann' for key 2", "where": {"position": "b.000001:9"}}
    log.logger("sync", source="s1").warning("row refused", statement=sql, position="b.000001:99", **error)
    line = json.loads(path.read_text())
    assert line["statement"] == "UPDATE `t1`.`a'b` SET c = ?, d=?, e = ? WHERE id = ?"
    assert line["cause"] == "? Duplicate entry ? for key ?"
    assert (line["code"], line["position"], line["where"]) == ("SYNC-003", "b.000001:99", {"position": "b.000001:9"})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("INSERT INTO shard_01.t2 VALUES (1, _utf8mb4'x', 0x1F, 1e5)", "INSERT INTO shard_01.t2 VALUES (?, ?, ?, ?)"),
        ('says "a\\"b" and b\'01\'', "says ? and ?"),
        ("SYNC-003 [binlog b.000003:456]: at 127.0.0.1:3306", "SYNC-003 [binlog b.000003:456]: at 127.0.0.1:3306"),
        ("Incorrect value: 'cut off \\' he", "Incorrect value: ?"),
        ("the row can't be kept: 'ann' isn't", "the row can't be kept: ? isn't"),
    ],
)
def test_what_counts_as_a_value(text: str, found: str) -> None:
    assert redacted(text) == found


def test_credentials_are_hidden_always(lines: Lines) -> None:
    texts = [
        "CREATE USER u IDENTIFIED BY 'hush'",
        "ALTER USER u IDENTIFIED WITH mysql_native_password AS 'hush'",
        "GRANT ALL ON *.* TO u IDENTIFIED BY PASSWORD 'hush'",
        "SET PASSWORD FOR u = PASSWORD('hush')",
        "{'user': 'root', 'password': 'hush'}",
        "mysql://root:hush@127.0.0.1:3306/db",
        "Authorization: Bearer hush",
        "token=hush",
    ]
    for text in texts:
        log.logger("sync").info("met", statement=text, more={"deep": [text]})
    written = lines()
    assert len(written) == len(texts)
    assert [line for line in written if "hush" in str(line)] == []
    assert all("******" in line["statement"] for line in written)


def test_what_is_kept_in_memory_is_what_the_file_has(path: Path) -> None:
    log.configure(log.LogSettings(path, redact=True))
    before = RING.since("", 0, 1)
    log.logger("sync").error("IDENTIFIED BY 'hush'", url="mysql://u:hush@h/d", row="a = 'secret value'")
    (kept,) = RING.since(RING.life, before[-1][0] if before else 0, 10)
    (written,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert kept[1] == written
    assert "hush" not in str(kept)
    assert "secret value" not in str(kept)


def test_a_large_file_is_put_aside_and_old_ones_go(tmp_path: Path) -> None:
    old = tmp_path / "u-2020-01-01T00-00-00.000000.log"
    other = tmp_path / "u-else.log"
    for one in (old, other):
        one.write_text("old\n")
        os.utime(one, (time.time() - KEPT_SECONDS - 9,) * 2)
    handler = RotatingFile(tmp_path / "u.log", largest_bytes=100)
    for number in range(4):
        handler.emit(logging.makeLogRecord({"msg": f"{number} " + "x" * 60}))
    handler.close()
    aside = sorted(tmp_path.glob("u-2*.log"))
    assert not old.exists()
    assert other.exists()
    assert [path.read_text()[0] for path in [*aside, tmp_path / "u.log"]] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("fault", ["rename", "open"])
def test_a_file_that_once_cannot_be_put_aside_is_written_on(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk, or in a folder where only the file itself may be written."""

    def refused(*args: object) -> None:
        raise OSError(28, "No space left on device")

    def emit(number: int) -> None:
        handler.emit(logging.makeLogRecord({"msg": f"{number} " + "x" * 60}))

    monkeypatch.setattr(logging, "raiseExceptions", False)
    handler = RotatingFile(tmp_path / "u.log", largest_bytes=100)
    emit(0)
    with monkeypatch.context() as faulty:
        if fault == "rename":
            faulty.setattr(Path, "rename", refused)
        else:
            faulty.setattr(handler, "_open", refused)
        emit(1)
    emit(2)
    handler.close()
    texts = [path.read_text() for path in sorted(tmp_path.glob("u*.log"))]
    assert "".join(sorted(line[0] for text in texts for line in text.splitlines())) == (
        "012" if fault == "rename" else "02"
    )


def test_what_another_process_appends_to_is_put_aside_too(tmp_path: Path) -> None:
    path = tmp_path / "spark.log"

    def aside() -> list[Path]:
        return sorted(tmp_path.glob("spark-2*.log"))

    with path.open("ab") as sink, subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=sink) as writer:
        assert writer.stdin is not None
        with kept_small(path, largest_bytes=100, every=0.01):
            for number in range(2):
                writer.stdin.write(f"{number} {'x' * 100}\n".encode())
                writer.stdin.flush()
                wait_until(lambda wanted=number: len(aside()) > wanted and not path.stat().st_size, "it is put aside")  # type: ignore[misc]
        writer.stdin.write(b"2 more\n")
        writer.stdin.close()
    assert [one.read_text()[0] for one in aside()] == ["0", "1"]
    assert path.read_text() == "2 more\n"


def test_what_comes_while_it_is_copied_is_copied_too_and_without_room_nothing_is_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, late, copy = tmp_path / "spark.log", ["b" * 100, "c" * 100], shutil.copyfileobj
    full = True

    def slow(found: Any, aside: Any) -> None:
        copy(found, aside)
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        if late:
            with path.open("a") as other:
                other.write(late.pop(0))

    monkeypatch.setattr(shutil, "copyfileobj", slow)
    path.write_text("a" * 100)
    with pytest.raises(OSError, match="No space"):
        rotation._empty_into(path, tmp_path / "aside")
    assert path.read_text() == "a" * 100
    assert not (tmp_path / "aside").exists()
    full = False
    rotation._empty_into(path, tmp_path / "aside")
    assert (tmp_path / "aside").read_text() == "".join(letter * 100 for letter in "abc")
    assert path.read_text() == ""


def test_ten_sampled_lines_a_minute_are_written() -> None:
    now = 0.0
    sampler = Sampler(clock=lambda: now)

    def written(source: str) -> dict[str, Any] | None:
        try:
            return dict(sampler(None, "warning", {"event": "again", "source": source, "sampled": True}))
        except structlog.DropEvent:
            return None

    assert [written("a") is not None for _ in range(13)] == [True] * 10 + [False] * 3
    assert written("b") is not None
    now = 61.0
    first, second = written("a"), written("a")
    assert first is not None
    assert first["left_out"] == 3
    assert second is not None
    assert "left_out" not in second


def test_a_file_that_cannot_be_written_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"CONFIG-029.*file/unshard.log"):
        log.configure(log.LogSettings(tmp_path / "file" / "unshard.log"))
