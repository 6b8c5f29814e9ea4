"""A shop in two cities, with data as shops have it, for the pictures of the page: a real run of `unshard run`."""

from __future__ import annotations

import itertools
import math
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.task_runs import TaskFiles
from unshard.testing.mariadb_server import MariadbServer

CITIES = {"berlin": 1, "lyon": 2}
"""The sources. Ids of a city begin at its number times `_IDS`."""
_IDS = 10_000_000
_ORDER = "id, customer_id, status, total, note, ordered_at"
UNCHANGED = 100
"""The oldest orders of a city, which nobody changes: a row of the target that differs stays so."""
SHARDS = tuple(f"orders_{number}" for number in range(1, 5))
FIRST = ("Anna", "Bruno", "Chloé", "David", "Emma", "Félix", "Greta", "Hugo", "Ines", "Jakob", "Léa", "Marta", "Nils")
LAST = ("Bauer", "Dubois", "Fischer", "Girard", "Huber", "Keller", "Laurent", "Moreau", "Richter", "Vogel", "Wagner")
STREETS = ("Lindenstraße", "Rue Victor Hugo", "Gartenweg", "Rue de la Paix", "Schillerstraße", "Quai Saint-Vincent")
STATUSES = ("new", "paid", "packed", "sent", "delivered")
GOODS = ("Espresso beans 1 kg", "Moka pot", "Filter paper", "Milk jug", "Grinder", "Cup, white", "Cup, blue", "Scale")


@dataclass(slots=True)
class PicturedShop:
    """The two servers with their tables, and the customers who order meanwhile."""

    servers: dict[str, MariadbServer]
    target: MariadbServer
    folder: Path
    _numbers: dict[str, itertools.count[int]] = field(default_factory=dict)
    _draws: random.Random = field(default_factory=lambda: random.Random(20))

    def create(self, orders: int) -> TaskFiles:
        """Make the tables, with so many orders in each of them; return the files of the task."""
        for city, server in self.servers.items():
            self._numbers[city] = itertools.count(CITIES[city] * _IDS)
            server.run(
                "CREATE DATABASE shop",
                "CREATE DATABASE stats",
                "CREATE TABLE stats.visits (id BIGINT PRIMARY KEY, page VARCHAR(80))",
                "CREATE TABLE shop.customers (id BIGINT PRIMARY KEY, name VARCHAR(80) NOT NULL, street VARCHAR(120), "
                "city VARCHAR(40) NOT NULL, newsletter BOOL NOT NULL DEFAULT FALSE)",
                "CREATE TABLE shop.order_items (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL, article VARCHAR(60) "
                "NOT NULL, quantity INT NOT NULL, price DECIMAL(8, 2) NOT NULL, KEY (order_id))",
                *(
                    f"CREATE TABLE shop.{shard} (id BIGINT PRIMARY KEY, customer_id BIGINT NOT NULL, "
                    "status VARCHAR(12) NOT NULL, total DECIMAL(10, 2) NOT NULL, note VARCHAR(200), "
                    "ordered_at DATETIME NOT NULL)"
                    for shard in SHARDS
                ),
            )
            for _ in range(orders // 100):
                server.run("BEGIN", *self._orders(city, 100), "COMMIT")
        rules = {
            "schema-pattern": "shop",
            "table-pattern": "orders_*",
            "target-schema": "shop",
            "target-table": "orders",
        }
        keys = {
            "shard-mode": "pessimistic",
            "routes": {"all-orders": rules},
            "validators": {"rows": {"mode": "none", "validate-interval": "1s", "check-interval": "1s"}},
        }
        return TaskFiles(
            self.folder, "shop", self.servers, self.target, ("shop",), keys=keys,
            instance={"route-rules": ["all-orders"], "validator-config-name": "rows"},
            source={"checker": {"check-enable": False}},
        ).write()  # fmt: skip

    @contextmanager
    def open(self, rate: float = 1.0) -> Iterator[None]:
        """Customers order in the background, more of them at some times than at others."""
        ended = threading.Event()

        def work(city: str, server: MariadbServer) -> None:
            connection = server.connection()
            try:
                with connection.cursor() as cursor:
                    while not ended.wait(0.1):
                        many = max(1, round(rate * 8 * (1 + 0.6 * math.sin(time.time() / 45 + CITIES[city]))))
                        for statement in ("BEGIN", *self._orders(city, many), *self._changes(city, many), "COMMIT"):
                            cursor.execute(statement)
            finally:
                connection.close()

        threads = [threading.Thread(target=work, args=one, name=f"shop {one[0]}") for one in self.servers.items()]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def _orders(self, city: str, many: int) -> list[str]:
        draw, customers, items = self._draws, [], []
        orders: dict[str, list[str]] = {shard: [] for shard in SHARDS}
        for number in itertools.islice(self._numbers[city], many):
            name = f"{draw.choice(FIRST)} {draw.choice(LAST)}"
            street = f"{draw.choice(STREETS)} {draw.randint(1, 90)}"
            customers.append(f"({number}, '{name}', '{street}', '{city.title()}', {draw.random() < 0.3})")
            price, quantity = draw.randint(300, 24_000) / 100, draw.randint(1, 4)
            items.append(f"({number}, {number}, '{draw.choice(GOODS)}', {quantity}, {price:.2f})")
            note = "'Please ring twice.'" if draw.random() < 0.1 else "NULL"
            row = f"({number}, {number}, 'new', {price * quantity:.2f}, {note}, NOW())"
            orders[SHARDS[number % len(SHARDS)]].append(row)
        found = [f"INSERT INTO shop.customers VALUES {', '.join(customers)}"]
        found += [
            f"INSERT INTO shop.{shard} ({_ORDER}) VALUES {', '.join(rows)}" for shard, rows in orders.items() if rows
        ]
        return [*found, f"INSERT INTO shop.order_items VALUES {', '.join(items)}"]

    def _changes(self, city: str, many: int) -> list[str]:
        draw, first = self._draws, CITIES[city] * _IDS
        return [
            f"UPDATE shop.{SHARDS[number % len(SHARDS)]} SET status = '{draw.choice(STATUSES)}' WHERE id = {number}"
            for number in (first + UNCHANGED + draw.randrange(2000) for _ in range(many))
        ]
