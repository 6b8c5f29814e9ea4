"""Files as dmctl itself writes them: every key, old and new names side by side, empty sections, bytes as lists."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from unshard.config.database import DatabaseConfig
from unshard.config.files import parse_source, parse_task

TASK = """
name: shop
task-mode: all
is-sharding: true
shard-mode: pessimistic
strict-optimistic-shard-mode: false
ignore-checking-items: []
meta-schema: dm_meta
enable-heartbeat: false
heartbeat-update-interval: 1
heartbeat-report-interval: 10
timezone: ""
case-sensitive: false
collation_compatible: loose
target-database:
  host: 10.0.0.9
  port: 4000
  user: root
  password: secret
  max-allowed-packet: null
  session: {}
  security: null
mysql-instances:
- source-id: shop-01
  meta: null
  filter-rules: [drops]
  column-mapping-rules: []
  route-rules: [orders]
  expression-filters: []
  black-white-list: ""
  block-allow-list: shops
  mydumper-config-name: global
  mydumper: null
  mydumper-thread: 0
  loader-config-name: global
  loader: null
  loader-thread: 0
  syncer-config-name: global
  syncer: null
  syncer-thread: 0
  validator-config-name: ""
online-ddl: true
shadow-table-rules: []
trash-table-rules: []
online-ddl-scheme: ""
routes:
  orders:
    schema-pattern: shop_*
    table-pattern: orders_*
    target-schema: shop
    target-table: orders
filters:
  drops:
    schema-pattern: shop_*
    table-pattern: orders_*
    events: [truncate, drop table]
    sql-pattern: []
    action: Ignore
column-mappings: {}
expression-filter: {}
black-white-list: {}
block-allow-list:
  shops:
    do-tables: []
    do-dbs: [shop_*]
    ignore-tables: []
    ignore-dbs: []
mydumpers:
  global:
    mydumper-path: ./bin/mydumper
    threads: 4
    chunk-filesize: "64"
    statement-size: 0
    rows: 0
    where: ""
    skip-tz-utc: true
    extra-args: ""
loaders:
  global:
    pool-size: 16
    dir: ./dumped_data
    sorting-dir-physical: ""
    import-mode: logical
    on-duplicate: ""
    on-duplicate-logical: replace
    on-duplicate-physical: none
    disk-quota-physical: 0
    checksum-physical: required
    analyze: optional
    range-concurrency: 0
    compress-kv-pairs: ""
    pd-addr: ""
syncers:
  global:
    meta-file: ""
    worker-count: 16
    batch: 100
    queue-size: 1024
    checkpoint-flush-interval: 30
    compact: false
    multiple-rows: false
    max-retry: 0
    auto-fix-gtid: false
    enable-gtid: false
    disable-detect: false
    safe-mode: false
    safe-mode-duration: 60s
    enable-ansi-quotes: false
validators: {}
clean-dump-file: true
ansi-quotes: false
remove-meta: false
experimental:
  async-checkpoint-flush: false
"""

SOURCE = """
enable: true
enable-gtid: false
auto-fix-gtid: false
relay-dir: relay-dir
meta-dir: ""
flavor: mysql
charset: ""
enable-relay: false
relay-binlog-name: ""
relay-binlog-gtid: ""
source-id: shop-01
from:
  host: 10.0.0.1
  port: 3306
  user: root
  password: secret
  max-allowed-packet: null
  session: {}
  security:
    ssl-ca: ""
    ssl-cert: ""
    ssl-key: ""
    cert-allowed-cn: []
    ssl-ca-bytes: %s
    ssl-cert-bytes: []
    ssl-key-bytes: []
    ssl-ca-base64: ""
    ssl-cert-base64: ""
    ssl-key-base64: ""
purge:
  interval: 3600
  expires: 0
  remain-space: 15
checker:
  check-enable: true
  backoff-rollback: 5m0s
  backoff-max: 5m0s
  check-interval: 5s
  backoff-min: 1s
  backoff-jitter: true
  backoff-factor: 2
server-id: 429534
tracer: {}
case-sensitive: false
filters: []
"""
PEM = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"


def test_what_get_task_writes_is_a_task_without_a_notice() -> None:
    task = parse_task(TASK)
    assert task.notices == ()
    assert task.block_allow_list["shops"].do_dbs == ("shop_*",)
    assert task.loaders["global"].on_duplicate_logical == "replace"
    assert task.filters["drops"].events == ("truncate table", "drop table")


def test_what_get_config_writes_is_a_source_without_a_notice() -> None:
    source = parse_source(SOURCE % list(PEM.encode()))
    assert source.notices == ()
    security = source.database.security
    assert security.pem("ca") == ("", PEM)
    assert security.pem("key") == ("", "")


def test_a_list_that_is_no_text_is_refused(files: Any) -> None:
    server = {"host": "h", "port": 1, "user": "u", "security": {"ssl-ca-bytes": [255, 300]}}
    (found,) = files.source_problems(**{"from": server})
    assert found == "from.security.ssl-ca-bytes: write PEM text, or the list of its bytes"


@pytest.mark.parametrize("empty", [True, False], ids=["the new name is empty", "both say the same"])
def test_an_old_name_counts_where_the_new_one_does_not_contradict_it(empty: bool) -> None:
    form = yaml.safe_load(TASK)
    form["black-white-list"] = form["block-allow-list"]
    form["mysql-instances"][0]["black-white-list"] = "shops"
    if empty:
        form["block-allow-list"] = {}
        form["mysql-instances"][0]["block-allow-list"] = ""
    task = parse_task(yaml.safe_dump(form))
    assert task.block_allow_list["shops"].do_dbs == ("shop_*",)
    assert task.mysql_instances[0].block_allow_list == "shops"


def test_a_starting_point_with_nothing_in_it_is_none(files: Any) -> None:
    meta = {"binlog-name": "", "binlog-pos": 0, "binlog-gtid": ""}
    task = files.read_task(task_mode="incremental", mysql_instances=[{"source-id": "s1", "meta": meta}])
    assert task.mysql_instances[0].meta is None


def test_whole_numbers_may_have_units(files: Any) -> None:
    used = [{"source-id": "s1", "mydumper": {"statement-size": "2MiB"}, "syncer": {"checkpoint-flush-interval": "1m"}}]
    (instance,) = files.read_task(mysql_instances=used).mysql_instances
    assert instance.mydumper.statement_size == 2 << 20
    assert instance.syncer.checkpoint_flush_interval == 60
    purge = files.read_source(purge={"interval": "2h", "expires": "48h", "remain-space": "20GB"}).purge
    assert (purge.interval, purge.expires, purge.remain_space) == (7200, 48, 20)


@pytest.mark.parametrize("value", ["1500ms", "5 apples", "5MiB"])
def test_a_number_with_another_unit_is_refused(files: Any, value: str) -> None:
    used = [{"source-id": "s1", "syncer": {"checkpoint-flush-interval": value}}]
    (found,) = files.task_problems(mysql_instances=used)
    assert found.startswith("mysql-instances[0].syncer.checkpoint-flush-interval: ")


def test_a_password_that_get_task_has_masked_is_refused() -> None:
    server = {"host": "h", "port": 1, "user": "u", "password": "******"}
    with pytest.raises(ValidationError, match="only stands for the password in a file that get-task has shown"):
        DatabaseConfig.model_validate(server)
