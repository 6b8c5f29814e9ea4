"""A validated task whose worker is killed: another one goes on with its errors, keys and loaded rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from shop import PATIENT, TARGET, Shop

from unshard.api.verbs import Validation
from unshard.testing.cluster import ThrowawayCluster
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.cluster]


@pytest.fixture(scope="module")
def shop(sources: dict[str, MariadbServer], target: MariadbServer, store: str) -> Iterator[Shop]:
    cluster = ThrowawayCluster(store, masters=1, workers=2, master=PATIENT)
    with cluster:
        shop = Shop(cluster, {"s1": sources["s1"]}, target)
        shop.create()
        cluster.ctl("operate-source", "create", shop.source_file("s1"))
        own = {"block-allow-list": "own", "route-rules": ["merged"], "syncer-config-name": "own"}
        quick = {"mode": "full", "validate-interval": "300ms", "check-interval": "100ms"}
        task = shop.task_file(
            **{
                "mysql-instances": [{"source-id": "s1", **own, "validator-config-name": "v"}],
                "validators": {"v": quick},
            }
        )
        cluster.told("start-task", task)
        shop.all_move()
        yield shop


def _status(shop: Shop) -> dict[str, Any]:
    answer = shop.cluster.asked(Validation(op="status", task="shop"))
    return dict(answer["validators"][0]) if answer["validators"] else {}


def _errors(shop: Shop, state: str = "unprocessed") -> list[dict[str, Any]]:
    return list(shop.cluster.asked(Validation(op="show-error", task="shop", error=state))["error"])  # type: ignore[arg-type]


def _is_compared(shop: Shop) -> bool:
    return "rows done/about: 1/1," in _status(shop).get("fullLoadRowsStatus", "")


def _start_anew(shop: Shop) -> None:
    """All loaded rows are compared once more."""
    shop.cluster.ctl("validation", "stop", "shop")
    shop.until(lambda: _status(shop)["stage"] == "Stopped", "stopped")
    shop.cluster.ctl("validation", "start", "shop")


def test_another_worker_goes_on_with_errors_and_keys(shop: Shop) -> None:
    shop.until(lambda: _is_compared(shop), "the loaded rows are compared")
    shop.until(lambda: _status(shop)["pendingRowsStatus"].endswith("0/0/0"), "all is judged")
    assert _errors(shop) == []
    old = shop.worker_of("s1")
    wrong, other = shop.add("s1"), shop.add("s1")
    shop.saved("shop")
    shop.target.run(f"DELETE FROM {TARGET.quoted} WHERE id IN ({wrong}, {other})")
    _start_anew(shop)
    shop.until(lambda: len(_errors(shop)) == 2, "two rows are missing")
    shop.until(lambda: _is_compared(shop), "all are compared")
    before = {one["id"]: one["srcData"] for one in _errors(shop)}
    shop.target.run(f"UPDATE {TARGET.quoted} SET note = 'other' WHERE id = 1")
    old.kill()
    shop.gives_up(old)
    shop.until(lambda: shop.serves("s1") not in ("", old.name), "another worker serves the source")
    shop.moves("s1")
    assert {one["id"]: one["srcData"] for one in _errors(shop)} == before
    shop.target.run(f"INSERT INTO {TARGET.quoted} VALUES ({wrong}, 'note {wrong}')")
    shop.until(lambda: len(_errors(shop)) == 1, "one is right again")
    assert len(_errors(shop, "resolved")) == 1
    _start_anew(shop)
    shop.until(lambda: len(_errors(shop)) == 2, "the new worker is told, and compares all rows")
