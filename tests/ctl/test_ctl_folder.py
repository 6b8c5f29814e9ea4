"""`config export` and `config import`: DM's folder, and back."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from unshard.cli.app import app
from unshard.ctl.verbs.config import file_name

KEPT = {
    "result": True,
    "msg": "",
    "tasks": {"orders": "name: orders\n", "../../up": "name: ../../up\n"},
    "sources": {"shop-01": "source-id: shop-01\n"},
    "relayWorkers": {"shop-01": ["w1"]},
}


def ctl(master: Any, *words: str) -> Result:
    return CliRunner().invoke(app, ["ctl", "--master-addr", master.address, *words])


def test_an_export_is_dms_folder_that_only_its_owner_reads(master: Any, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "configs"
    master.answers["config-export"] = (200, KEPT)
    for _ in range(2):  # a second one replaces the first
        assert ctl(master, "config", "export", "-d", str(folder)).exit_code == 0
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [path.relative_to(folder).as_posix() for path in files]
    assert names == ["relay_workers.json", "sources/shop-01.yaml", "tasks/%2E.%2F..%2Fup.yaml", "tasks/orders.yaml"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert json.loads((folder / "relay_workers.json").read_text()) == {"shop-01": ["w1"]}
    assert list((tmp_path / "deep").iterdir()) == [folder]


def test_an_import_creates_sources_then_starts_tasks_and_leaves_what_is_there(master: Any, tmp_path: Path) -> None:
    master.answers["config-export"] = (200, KEPT)
    ctl(master, "config", "export", "-d", str(tmp_path))
    there = {
        "result": False,
        "msg": "",
        "sources": [{"result": False, "msg": "CLUSTER-006: the source already exists"}],
    }
    master.answers["operate-source"] = (200, there)
    master.answers["start-task"] = (400, {"result": False, "msg": "CLUSTER-007: task orders already exists"})
    done = ctl(master, "config", "import", "--dir", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert [body.get("config") or body.get("task") for _, body, _ in master.asked[1:]] == [
        ["source-id: shop-01\n"],
        "name: ../../up\n",
        "name: orders\n",
    ]


def test_an_import_stops_where_the_master_refuses(master: Any, tmp_path: Path) -> None:
    master.answers["config-export"] = (200, KEPT)
    ctl(master, "config", "export", "-d", str(tmp_path))
    master.answers["operate-source"] = (200, {"result": False, "msg": "no such host", "sources": []})
    done = ctl(master, "config", "import", "-d", str(tmp_path))
    assert done.exit_code == 1
    assert "shop-01.yaml: no such host" in json.loads(done.stdout)["msg"]
    assert master.verbs == ["config-export", "operate-source"]


def test_a_folder_of_something_else_is_refused(master: Any, tmp_path: Path) -> None:
    done = ctl(master, "config", "import", "-d", str(tmp_path))
    assert done.exit_code == 1
    assert "CLUSTER-046" in done.stderr
    assert master.asked == []
    (tmp_path / "taken").write_text("")
    master.answers["config-export"] = (200, KEPT)
    assert "CONFIG-002" in ctl(master, "config", "export", "-d", str(tmp_path / "taken")).stderr


def test_one_configuration_is_printed_or_saved(master: Any, tmp_path: Path) -> None:
    master.answers["config"] = (200, {"result": True, "msg": "", "cfg": "name: orders\n"})
    path = tmp_path / "orders.yaml"
    assert json.loads(ctl(master, "config", "task", "orders").stdout)["cfg"] == "name: orders\n"
    assert ctl(master, "config", "task", "orders", "-p", str(path)).exit_code == 0
    assert path.read_text() == "name: orders\n"
    assert ctl(master, "config", "task", "orders", "-p", str(path / "below")).exit_code == 1


@pytest.mark.parametrize("name", ["a", "shop-01", "..", "../x", "a/b", ".hidden", "a\nb", "ü`'\"", "%2E"])
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    assert (tmp_path / f"{file_name(name)}.yaml").resolve().parent == tmp_path.resolve()
