"""The newest lines of the log: what a worker keeps and tells, what the page makes of it, the screen."""

from __future__ import annotations

from pathlib import Path

from page_served import HOSTILE, page_served, status
from test_page import client, read

from unshard.api.status import MOST_LINES, LogLine, LogTail
from unshard.errors import ClusterError
from unshard.log.ring import LINES, LONGEST_TEXT, LogRing
from unshard.web.page.log_watch import LogWatch, TaskLog, shown_lines
from unshard.worker.agent import log_tail


def written(ring: LogRing, event: str, **fields: str) -> None:
    line = {"timestamp": "2026-01-02T03:04:05.678901Z", "level": "info", "logger": "sync", "event": event, **fields}
    ring.keep(None, "info", line)


def test_a_ring_is_bounded_and_tells_what_is_new() -> None:
    ring = LogRing()
    for at in range(LINES + 10):
        written(ring, f"line {at}", text="x" * 10 * LONGEST_TEXT, number="1")
    first = log_tail("", 0, ring)
    assert len(ring._lines) == LINES
    assert len(first.lines) == MOST_LINES
    assert first.lines[-1].event == f"line {LINES + 9}"
    assert len(first.lines[-1].more["text"]) == LONGEST_TEXT + 1
    assert log_tail(first.life, first.lines[-1].number, ring).lines == ()
    written(ring, "another", task="shop", source="s1")
    (new,) = log_tail(first.life, first.lines[-1].number, ring).lines
    assert (new.event, new.task, new.source, new.more) == ("another", "shop", "s1", {})
    assert len(log_tail("another life", new.number, ring).lines) == MOST_LINES


def line(number: int, event: str = "", **fields: str) -> LogLine:
    return LogLine(number=number, time=f"2026-01-02T03:04:{number:02d}", event=event or f"e{number}", **fields)  # type: ignore[arg-type]


class Processes:
    """Two sources in one process, a third in another."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int]] = []
        self.silent = False
        self.lines = [line(1, task="t", source="s1"), line(2, task="other", source="s2"), line(3, source="s2"), line(4)]

    def __call__(self, source: str, life: str, after: int) -> LogTail:
        self.asked.append((source, life, after))
        if source == "s3" and self.silent:
            raise ClusterError("CLUSTER-023")
        if source == "s3":
            return LogTail(life="b", lines=(line(7, task="t", source="s3"),) if after < 7 else ())
        return LogTail(life="a", lines=tuple(one for one in self.lines if life != "a" or one.number > after))


def test_lines_of_one_process_stand_once_and_only_those_of_the_task() -> None:
    processes = Processes()
    watch, sources = LogWatch(processes), {"t": ("s1", "s2", "s3")}
    assert not watch.look(sources, 0.0), "nobody looks"
    assert watch.watch("t", 0.0)
    assert watch.look(sources, 0.0)
    assert [one.event for one in watch.lines("t", sources["t"]).lines] == ["e7", "e3", "e1"]
    assert not watch.look(sources, 2.0)
    assert sorted(processes.asked[-3:]) == [("s1", "a", 4), ("s2", "a", 4), ("s3", "b", 7)]
    processes.lines.append(line(9, task="t", source="s1"))
    assert watch.look(sources, 4.0)
    assert [one.event for one in watch.lines("t", sources["t"]).lines] == ["e9", "e7", "e3", "e1"]
    asked = len(processes.asked)
    assert not watch.look(sources, 60.0)
    assert len(processes.asked) == asked
    processes.silent = True
    watch.watch("t", 61.0)
    assert watch.look(sources, 61.0)
    assert "CLUSTER-023" in watch.lines("t", sources["t"]).silent["s3"]


def test_lines_are_chosen_by_source_level_and_words() -> None:
    lines = (
        line(1, "Batch closed", level="info", source="s1"),
        line(2, "slow", level="warning", source="s2", more={"waits": "for a Lock"}),  # type: ignore[arg-type]
        line(3, "failed", level="error", source="s1"),
        line(4, "detail", level="debug", source="s1"),
    )

    def chosen(source: str, level: str, words: str) -> list[int]:
        return [one.number for one in shown_lines(TaskLog(lines), source, level, words)]

    assert chosen("", "debug", "") == [1, 2, 3, 4]
    assert chosen("", "warning", "") == [2, 3]
    assert chosen("s1", "info", "") == [1, 3]
    assert chosen("", "debug", "a LOCK") == [2]


def test_the_screen_shows_hostile_lines_as_text_and_no_credentials(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "oda") as browser:
        written(page.link.ring, HOSTILE, task="shop", source="s1", level="error", cause=HOSTILE)
        written(page.link.ring, "of another", task="another", source="s9")
        found = read(browser, "tasks/shop/log")
        assert found.text.count(HOSTILE) == found.text.count(HOSTILE.replace("\u202e", "\\u202e")) == 1
        assert "of another" not in found.text
        assert "<script>alert" not in browser.get("tasks/shop/log").text
        assert "No line matches" in read(browser, "tasks/shop/log?q=nothing").text
        assert read(browser, "tasks/none/log", 404)


def test_a_viewer_has_no_log(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "vic") as browser:
        assert not [link for link in read(browser, "tasks/shop").links() if link.endswith("/log")]
        assert browser.get("tasks/shop/log").status_code == 403


def test_the_lines_are_downloaded_as_text(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "oda") as browser:
        written(page.link.ring, "first\nline", task="shop", source="s1", level="error", cause="two\nlines")
        written(page.link.ring, "second", task="shop", source="s1")
        found = browser.get("tasks/shop/log/download?level=info")
        assert found.headers["content-type"] == "text/plain; charset=utf-8"
        assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''shop.log"
        first, second = found.text.splitlines()
        assert first == '2026-01-02T03:04:05.678901Z ERROR s1 sync: first line cause="two\\nlines"'
        assert second == "2026-01-02T03:04:05.678901Z INFO s1 sync: second"
        assert "second" not in browser.get("tasks/shop/log/download?level=error").text
        assert browser.get("tasks/none/log/download").status_code == 404
        assert "log/download?" in str(read(browser, "tasks/shop/log").links())
        with client(page, "vic") as viewer:
            assert viewer.get("tasks/shop/log/download").status_code == 403
