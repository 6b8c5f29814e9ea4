"""Every verb of dmctl with its flags: what it asks of a master."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from unshard.api.verbs import REQUESTS
from unshard.cli.app import app
from unshard.config.files import parse_source
from unshard.ctl.verbs.source import SAMPLE_SOURCE

TASK = "name: orders\ntask-mode: all\n"
SOURCE = "source-id: shop-01\n"

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("check-task {task} -e 3 -w 4", "check-task", {"task": TASK, "errCnt": 3, "warnCnt": 4}),
    ("check-task {task} --start-time '2026-01-02 03:04:05'", "check-task", {"startTime": "2026-01-02 03:04:05"}),
    ("start-task {task}", "start-task", {"task": TASK, "sources": [], "removeMeta": False, "startTime": ""}),
    ("start-task {task} --remove-meta -s a,b -s {source}", "start-task", {"sources": ["a", "b", "shop-01"]}),
    ("start-task {task} --reset --yes", "start-task", {"task": TASK, "reset": "do"}),
    ("stop-task orders", "stop-task", {"name": "orders", "sources": [], "batchSize": 5}),
    ("stop-task {task}", "stop-task", {"name": "orders"}),
    ("pause-task -s a --batch-size 2", "pause-task", {"name": "", "sources": ["a"], "batchSize": 2}),
    ("-s a resume-task orders", "resume-task", {"name": "orders", "sources": ["a"]}),
    ("update-task {task}", "update-task", {"task": TASK}),
    ("query-status", "query-status", {"name": "", "sources": [], "more": False}),
    ("query-status {task} --more --source=a", "query-status", {"name": "orders", "more": True, "sources": ["a"]}),
    ("shard-ddl-lock", "shard-ddl-lock", {"task": "", "sources": []}),
    ("shard-ddl-lock orders -s a", "shard-ddl-lock", {"task": "orders", "sources": ["a"]}),
    ("show-ddl-locks {task}", "shard-ddl-lock", {"task": "orders"}),
    (
        "shard-ddl-lock unlock 'orders-`s`.`t`' -o a -f -a exec -d s -t t -s b",
        "shard-ddl-lock-unlock",
        {
            "id": "orders-`s`.`t`",
            "owner": "a",
            "forceRemove": True,
            "action": "exec",
            "database": "s",
            "table": "t",
            "sources": ["b"],
        },
    ),
    ("unlock-ddl-lock x --owner a", "shard-ddl-lock-unlock", {"id": "x", "owner": "a", "forceRemove": False}),
    ("operate-source create {source} -w w1", "operate-source", {"op": "create", "config": [SOURCE], "worker": "w1"}),
    ("operate-source update {source}", "operate-source", {"op": "update", "config": [SOURCE]}),
    ("operate-source stop {source} -s b", "operate-source", {"op": "stop", "sourceId": ["shop-01", "b"]}),
    ("operate-source show -s a", "operate-source", {"op": "show", "sourceId": ["a"], "config": []}),
    ("update-source {source}", "update-source", {"config": SOURCE}),
    ("transfer-source {source} w2", "transfer-source", {"source": "shop-01", "worker": "w2"}),
    ("start-relay -s a w1 w2", "start-relay", {"sources": ["a"], "workers": ["w1", "w2"]}),
    ("stop-relay -s a", "stop-relay", {"sources": ["a"], "workers": []}),
    ("pause-relay -s a,b", "pause-relay", {"sources": ["a", "b"]}),
    ("resume-relay -s a", "resume-relay", {"sources": ["a"]}),
    (
        "purge-relay -s a -f mysql-bin.000009 --sub-dir x.000001",
        "purge-relay",
        {"sources": ["a"], "filename": "mysql-bin.000009", "subDir": "x.000001"},
    ),
    ("offline-member --worker -n w1", "offline-member", {"type": "worker", "name": "w1"}),
    ("offline-member --master --name m1", "offline-member", {"type": "master", "name": "m1"}),
    ("operate-leader evict", "operate-leader", {"op": "evict"}),
    ("operate-leader cancel-evict", "operate-leader", {"op": "cancel-evict"}),
    ("list-member", "list-member", {"leader": False, "master": False, "worker": False, "names": []}),
    ("list-member -l -m -w -n a,b -n c", "list-member", {"leader": True, "master": True, "names": ["a", "b", "c"]}),
    ("binlog skip orders -b mysql-bin.000003:4 -s a", "binlog", {"op": "skip", "binlogPos": "mysql-bin.000003:4"}),
    ("binlog replace orders 'ALTER TABLE a.b ADD c INT'", "binlog", {"sqls": ["ALTER TABLE a.b ADD c INT"]}),
    ("binlog inject {task} 'A' 'B' -s a", "binlog", {"op": "inject", "task": "orders", "sqls": ["A", "B"]}),
    ("binlog revert orders", "binlog", {"op": "revert", "sources": [], "sqls": []}),
    ("binlog list orders --all", "binlog", {"op": "list", "every": True}),
    ("handle-error orders replace 'X' -b f.000001:4", "binlog", {"op": "replace", "sqls": ["X"]}),
    ("handle-error orders skip", "binlog", {"op": "skip", "task": "orders"}),
    ("binlog-schema list orders d t -s a", "binlog-schema", {"op": "list", "database": "d", "table": "t"}),
    ("binlog-schema update orders d t {sql} --flush --sync", "binlog-schema", {"op": "update", "schema": "CREATE"}),
    ("binlog-schema update orders d t --from-source", "binlog-schema", {"fromSource": True, "schema": ""}),
    ("binlog-schema delete orders d t", "binlog-schema", {"op": "delete", "task": "orders"}),
    ("operate-schema get orders -d d -t t -s a", "binlog-schema", {"op": "list", "sources": ["a"], "table": "t"}),
    ("operate-schema set {task} {sql} -d d -t t --flush", "binlog-schema", {"op": "update", "schema": "CREATE"}),
    ("operate-schema remove orders -d d -t t", "binlog-schema", {"op": "delete"}),
    ("validation start orders --mode fast", "validation", {"op": "start", "task": "orders", "mode": "fast"}),
    ("validation start --all-task -s a", "validation", {"op": "start", "allTask": True, "sources": ["a"]}),
    ("validation stop {task}", "validation", {"op": "stop", "task": "orders", "allTask": False}),
    ("validation status orders --table-stage stopped", "validation", {"op": "status", "tableStage": "stopped"}),
    ("validation show-error orders --error all", "validation", {"op": "show-error", "error": "all"}),
    ("validation show-error orders", "validation", {"op": "show-error", "error": "unprocessed"}),
    ("validation ignore-error orders 7", "validation", {"op": "ignore-error", "id": 7, "all": False}),
    ("validation resolve-error orders --all", "validation", {"op": "resolve-error", "id": 0, "all": True}),
    ("validation clear-error orders 7 -s a", "validation", {"op": "clear-error", "id": 7, "sources": ["a"]}),
    (
        "validation update orders --cutover-binlog-pos '(mysql-bin.000003, 1234)'",
        "validation",
        {"op": "update", "cutoverBinlogPos": "(mysql-bin.000003, 1234)", "cutoverBinlogGtid": ""},
    ),
    ("config task {task}", "config", {"type": "task", "name": "orders"}),
    ("config source shop-01", "config", {"type": "source", "name": "shop-01"}),
    ("config master m1", "config", {"type": "master", "name": "m1"}),
    ("config worker w1", "config", {"type": "worker", "name": "w1"}),
    ("config task-template t", "config", {"type": "task-template", "name": "t"}),
    ("get-config source {source}", "config", {"type": "source", "name": "shop-01"}),
    ("get-task-config orders", "config", {"type": "task", "name": "orders"}),
    ("config task update {task}", "update-task", {"task": TASK}),
    ("config source update {source}", "update-source", {"config": SOURCE}),
    ("encrypt secret", "encrypt", {"plaintext": "secret"}),
    ("log-level", "log-level", {"level": "", "names": []}),
    ("log-level debug -n w1,w2", "log-level", {"level": "debug", "names": ["w1", "w2"]}),
]


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    texts = {"task": ("task.yaml", TASK), "source": ("source.yaml", SOURCE), "sql": ("t.sql", "CREATE")}
    for name, text in texts.values():
        (tmp_path / name).write_text(text)
    return {key: str(tmp_path / name) for key, (name, _) in texts.items()}


def test_each_verb_asks_for_what_its_words_say(master: Any, places: dict[str, str]) -> None:
    for line, verb, wanted in CASES:
        words = shlex.split(line.format(**places))
        done = CliRunner().invoke(app, ["ctl", "--master-addr", master.address, *words])
        assert done.exit_code == 0, (line, done.output)
        assert json.loads(done.stdout) == {"result": True, "msg": "", "sources": []}
        asked, sent, _ = master.asked.pop()
        body = REQUESTS[asked].model_validate(sent).model_dump(mode="json", by_alias=True)
        assert (asked, {key: body[key] for key in wanted}) == (verb, wanted), line
        assert REQUESTS[verb].model_validate(body).verb == verb
        assert master.asked == [], line


def test_no_verb_of_a_master_is_without_a_command() -> None:
    by_folder = {"config-export"}
    assert {verb for _, verb, _ in CASES} == REQUESTS.keys() - by_folder


@pytest.mark.parametrize(
    "line",
    [
        "stop-task",
        "start-relay",
        "start-relay -s a,b",
        "pause-relay",
        "purge-relay -s a",
        "operate-source",
        "operate-source create",
        "operate-source stop",
        "operate-source rename x",
        "operate-leader demote",
        "offline-member -n x",
        "offline-member --master --worker -n x",
        "log-level loud",
        "shard-ddl-lock unlock",
        "query-status --rpc-timeout fast",
        "query-status --rpc-timeout 0",
        "query-status --ssl-cert only.pem",
        "validation start",
        "nothing",
        "help nothing",
    ],
)
def test_wrong_use_asks_nobody(master: Any, line: str) -> None:
    done = CliRunner().invoke(app, ["ctl", "--master-addr", master.address, *shlex.split(line)])
    assert (done.exit_code, master.asked) == (2, []), done.output


def test_a_file_that_is_not_there_is_no_name(master: Any) -> None:
    for line in ("stop-task gone.yaml", "query-status -s gone.yaml", "start-task gone", "update-source gone"):
        done = CliRunner().invoke(app, ["ctl", "--master-addr", master.address, *shlex.split(line)])
        assert done.exit_code == 1, line
        assert "CONFIG-002" in done.stderr, line
    assert master.asked == []


def test_without_a_verb_the_verbs_are_told() -> None:
    done = CliRunner().invoke(app, ["ctl"])
    assert done.exit_code == 2
    assert "query-status" in done.stdout
    told = CliRunner().invoke(app, ["ctl", "help", "binlog", "skip"])
    assert told.exit_code == 0
    assert "--binlog-pos" in told.stdout


def test_the_sample_of_a_source_loads_also_with_what_is_commented_out() -> None:
    printed = CliRunner().invoke(app, ["ctl", "operate-source", "-p"]).stdout
    assert printed == SAMPLE_SOURCE
    assert parse_source(printed).source_id == "shop-01"
    keys = [
        line[2:] if line.startswith("# ") and ":" in line and "GTID" not in line else line
        for line in printed.splitlines()
    ]
    assert parse_source("\n".join(keys)).filters


def test_encrypting_and_tokens_need_no_master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSHARD_SECRET_KEY_PATH", "")  # the command sets it; it is as before behind the test
    key = tmp_path / "key"
    key.write_text("00112233445566778899aabbccddeeff" * 2)
    done = CliRunner().invoke(app, ["ctl", "encrypt", "--secret-key-path", str(key)], input="secret\n")
    assert done.exit_code == 0
    assert "secret" not in done.stdout
    assert json.loads(done.stdout)["ciphertext"]
    made = CliRunner().invoke(app, ["ctl", "token", "alice", "operator"]).stdout
    assert "unshard_" in made
    assert "role: operator" in made
