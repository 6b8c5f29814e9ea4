"""Builds the units of a subtask from its config: every unit is wired here, and only here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

from unshard.compare.sides import sides_of
from unshard.config.subtask import SubtaskConfig
from unshard.ddl.sandbox import ScratchPlace, show_create_database
from unshard.ddl.tracker import SchemaTracker
from unshard.dump.settings import DumpSettings
from unshard.dump.unit import DumpUnit
from unshard.errors import UnshardError
from unshard.load.checkpoint import LoadTables
from unshard.load.unit import LoadSettings, LoadUnit
from unshard.model.position import Location, Position
from unshard.mysql.altered_values import documents, target_kind, texts_of_documents, times
from unshard.mysql.collation_weights import collation_difference
from unshard.mysql.connection import Endpoint, session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.flavour import identify
from unshard.mysql.structure import families, is_sequence
from unshard.relay.unit import RelayUnit
from unshard.run_tasks import RunTasks
from unshard.source.local_time import utc_of
from unshard.source.requirements import check_available, check_reached, check_requirements
from unshard.source.snapshot import locate
from unshard.spark.batches import interrupt_batch, run_batch
from unshard.spark.folders import reading, writing
from unshard.spark.lazy import LazySession
from unshard.spark.worker_process import wait
from unshard.sync.batch.plan import BatchShape
from unshard.sync.batch.throttle import TargetLimits, Throttle
from unshard.sync.checkpoint.safe_mode import Delivery
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.planning.batch_size import LARGEST_BYTES
from unshard.sync.planning.coarse_keys import CoarseKeys
from unshard.sync.planning.planner import Planner
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.planning.target_tables import TargetTables
from unshard.sync.planning.target_triggers import TargetTriggers
from unshard.sync.planning.told_alterations import ToldAlterations
from unshard.sync.sharding.coordinator import ShardingGroups
from unshard.sync.sharding.optimistic import OptimisticGroups
from unshard.sync.sharding.optimistic_statements import OptimisticStatements
from unshard.sync.sharding.statements import ShardedStatements
from unshard.sync.sharding.table_owners import Ownership
from unshard.sync.statement import Statements
from unshard.sync.statements.backfill import Backfiller
from unshard.sync.statements.earlier_lists import EarlierLists
from unshard.sync.statements.tracked_tables import TrackedTables
from unshard.sync.unit import SyncUnit
from unshard.target.meta import MetaTables
from unshard.target.rate_limiter import RateLimiter
from unshard.target.receipts import Order
from unshard.target.validation import is_recorded
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.expressions.filter import ExpressionFilters
from unshard.transform.route import Router
from unshard.transform.source_rules import SourceRules, TableSelection, allow_list
from unshard.validation.on_demand import OnDemandValidator
from unshard.validation.validator import Validator
from unshard.worker.first_structures import FirstStructures
from unshard.worker.source_facts import (
    answer_of,
    check_filters,
    check_rules,
    listing,
    rules_of,
    statement_rules,
    upstream_tables,
)
from unshard.worker.source_traits import read_traits, source_zone
from unshard.worker.start import StartPoint
from unshard.worker.subtask import Subtask, SubtaskRelay
from unshard.worker.watch import TargetWatch, UpstreamWatch

RelayFor: TypeAlias = Callable[[Location | None, str], SubtaskRelay]
"""The relay of a subtask that begins to read there (None: the present end), of the server with that uuid."""


def build_subtask(
    config: SubtaskConfig, spark: LazySession, relays: RelayFor | None = None, order: Order | None = None
) -> Subtask:
    """Return the subtask of one source, wherever the task's other sources run.

    Reads both ends; raises the errors of the checks. `relays` None: a relay log of its own, which nobody shares.
    `order`: the master's, by which it claims the source.
    """
    try:
        return _build(config, spark, relays, order)
    except UnshardError as error:
        raise error.at(source=config.source_id) from error


def _throttle(config: SubtaskConfig) -> Throttle:
    limits = TargetLimits(config.target.max_rows_per_second, config.target.max_connections)
    return Throttle(limits, _gate(config) if limits != TargetLimits() else None)


def _build(config: SubtaskConfig, spark: LazySession, relays: RelayFor | None, order: Order | None) -> Subtask:
    throttle = _throttle(config)
    source, target = to_endpoint(config.source.database), to_endpoint(config.target)
    slots = spark.slots
    beginning = beginning_of(config)
    meta, load_tables, directory = beginning.meta, beginning.load_tables, beginning.dump_directory
    beginning.check_load()
    relay = None
    if config.mode in ("incremental", "all"):
        start, upstream = _check_source(config, source, beginning)
        relay = (relays or partial(_own_relay, config))(start, upstream)
    fresh = beginning.checkpoint() is None
    if fresh and config.mode != "incremental":
        spark.begin()  # the copy's jobs need it
    tag = f"unshard-copy-{config.name}-{config.source_id}".replace(",", "_")
    work = spark.tasks(tag)
    dump = load = None
    if config.mode in ("full", "all", "dump"):
        dump = _dump(config, source, directory, writing(work, spark, directory, config.source_id), slots)
    if config.mode in ("full", "all", "load"):
        from_folder = reading(work, spark, directory, config.source_id)
        load = _load(config, target, load_tables, directory, from_folder, slots, throttle.gate)
    sync = first = None
    sync_tag = f"unshard-sync-{config.name}-{config.source_id}".replace(",", "_")
    if relay is not None:
        run = throttle.around(partial(run_batch, spark, tag=sync_tag))
        store = CheckpointStore(target, meta, config.source_id, order=order)
        sync, first = _sync(config, source, store, relay, run, slots, fresh=fresh)
    return Subtask(
        config.source_id,
        beginning,
        relay,
        dump,
        load,
        sync,
        UpstreamWatch(source),
        partial(spark.interrupt, tag),
        lambda: interrupt_batch(spark, sync_tag, sync.store.rows_writer) if sync is not None else None,
        partial(_check_source, config, source, beginning),
        TargetWatch(target, sync.store) if sync is not None else None,
        _validation(config, target, sync, spark) if sync is not None else None,
        partial(first.begin, sync) if sync is not None and first is not None else None,
    )


def _validation(config: SubtaskConfig, target: Endpoint, sync: SyncUnit, spark: LazySession) -> OnDemandValidator:
    build = partial(_validator, config, target, sync, spark)
    store = sync.store
    recorded = partial(is_recorded, meta=store.meta, source=config.source_id)
    return OnDemandValidator(
        build, lambda: store.on_target(recorded), build() if config.validator.mode != "none" else None
    )


def _validator(config: SubtaskConfig, target: Endpoint, sync: SyncUnit, spark: LazySession) -> Validator:
    tag = f"unshard-validate-{config.name}-{config.source_id}".replace(",", "_")
    return Validator(
        config.source_id,
        config.validator,
        lambda: sides_of((config,), utc_of)[0],
        target,
        sync.store.meta,
        sync.store,
        sync.meter,
        spark.tasks(tag),
        lambda: sync.rules.version,
        spark.slots,
        tuple(peer for peer in config.peers if peer != config.source_id),
        partial(spark.interrupt, tag),
    )


def beginning_of(config: SubtaskConfig) -> StartPoint:
    """Return the start point of the subtask, on both servers and on disk; asks nobody yet."""
    return StartPoint(
        config.source_id,
        to_endpoint(config.source.database),
        to_endpoint(config.target),
        MetaTables(config.meta_schema, config.name),
        LoadTables(config.meta_schema, config.name, config.source_id),
        Path(config.loader.directory).absolute(),
        _meta_start(config),
        not config.clean_dump_file,
        Router(config.routes, config.case_sensitive).route if config.loader.on_duplicate != "error" else None,
        config.attempt,
    )


def _own_relay(config: SubtaskConfig, start: Location | None, upstream: str) -> RelayUnit:
    folder = Path(config.source.relay_dir).absolute() / config.source_id
    return RelayUnit(config.source, to_endpoint(config.source.database), folder, start, upstream=upstream)


def _meta_start(config: SubtaskConfig) -> Location | None:
    start = config.start
    return Location(Position(start.binlog_name, start.binlog_pos), start.binlog_gtid) if start else None


def _check_source(config: SubtaskConfig, endpoint: Endpoint, beginning: StartPoint) -> tuple[Location | None, str]:
    """Return the location where the relay has to begin, and the uuid of the server, which is known to have it.

    That is by GTID alone where the names on record are those of another server.
    """
    with session(endpoint, "source") as connection:
        server = identify(connection)
        check_requirements(connection, server, config.source_id)
        same = beginning.check_upstream(connection, server, by_gtid=config.source.enable_gtid)
        start = beginning.relay_start()
        if start is not None and not same:
            return beginning.gtid_start(), server.uuid
        if start is not None and not (Path(config.source.relay_dir) / config.source_id).exists():
            check_available(connection, start.position, config.source_id)
        checkpoint = beginning.checkpoint()
        for place in filter(None, (start, checkpoint.location if checkpoint is not None else None)):
            check_reached(connection, place.position, config.source_id)
    return start, server.uuid


def _dump(config: SubtaskConfig, endpoint: Endpoint, directory: Path, work: RunTasks, slots: int) -> DumpUnit:
    settings = config.dumper
    return DumpUnit(
        endpoint,
        config.source_id,
        DumpSettings(
            directory=directory,
            threads=settings.threads,
            rows=settings.rows,
            chunk_filesize=settings.chunk_bytes,
            statement_size=settings.statement_bytes,
            where=settings.where,
            format=settings.format,
            consistency=settings.consistency,
            attempt=config.attempt,
            follows=config.mode == "all",
        ),
        TableSelection.of(config),
        work,
        wait,
        slots=slots,
    )


def _gate(config: SubtaskConfig) -> RateLimiter:
    """Create the rate limit's records in the target, and return the limits."""
    gate = RateLimiter(config.meta_schema, config.target.max_rows_per_second, config.target.max_connections)
    with session(to_endpoint(config.target), "target") as connection:
        gate.create(connection)
    return gate


def _load(
    config: SubtaskConfig,
    endpoint: Endpoint,
    tables: LoadTables,
    directory: Path,
    work: RunTasks,
    slots: int,
    gate: RateLimiter | None,
) -> LoadUnit:
    """Return the load.

    More tasks than Spark has slots would only cut the files into more parts, each with a start of its own.
    """
    pool = min(config.loader.pool_size, config.target.max_connections or config.loader.pool_size)
    router = Router(config.routes, config.case_sensitive)
    return LoadUnit(
        endpoint,
        tables,
        LoadSettings(
            directory,
            pool,
            config.loader.on_duplicate,
            gate,
            slots,
            config.loader.incremental_import,
            in_utc=config.timezone != "",
            escape_backslash=config.loader.escape_backslash,
        ),
        router.route,
        ColumnMapper(config.column_mappings, config.case_sensitive).mapping_for,
        work,
        lambda name: router.extracted(name, config.source_id),
        allow_list(config),
        config.pessimistic,
        config.collations,
        clamps=config.time_values == "clamp",
        zone=partial(source_zone, to_endpoint(config.source.database)) if config.mode != "load" else lambda: "",
    )


def _sync(
    config: SubtaskConfig,
    source: Endpoint,
    store: CheckpointStore,
    relay: SubtaskRelay,
    run: Callable[[Any], Any],
    slots: int,
    *,
    fresh: bool,
) -> tuple[SyncUnit, FirstStructures]:
    """Return the incremental part, and what finds the structures with which it begins where there is no copy."""
    name, settings, own = config.source_id, config.syncer, SourceRules.of(config)
    allow, router, mapper, events = own.allow, own.router, own.mapper, own.events
    exact = config.delivery == "exactly-once"
    triggers = TargetTriggers(name, lambda: tables.targets, exact and not config.leaves_out("target_triggers"))
    targets = TargetTables(lambda table: store.on_target(lambda connection: triggers.read(connection, table)))
    if config.target.checks_foreign_keys:
        targets.read_families = lambda: store.on_target(families)
    traits = read_traits(source)
    earlier = EarlierLists(store, own.followed)
    first = FirstStructures(own, store, source, traits.dialect, targets.get, earlier)
    tracker = SchemaTracker(
        ScratchPlace(config.meta_schema, config.name, name),
        unknown=first.of,
        presumed=first.presumed,
        schema_default=lambda schema: answer_of(source, lambda connection: show_create_database(connection, schema)),
    )
    rules = statement_rules(own)
    upstream = upstream_tables(source)
    peers = config.peers or (name,)
    ownership = Ownership(store, rules, peers, told=config.pessimistic or len(peers) > 1)
    lazy = config.mode == "incremental"
    tables = TrackedTables(name, tracker, rules, upstream, logs_creates=traits.logs_creates, lazy=lazy)
    tables.copies = lambda table: own.dumped(table).passes
    tables.listing, tables.earlier, tables.rules_of = partial(listing, source), earlier, partial(rules_of, own=own)
    check_rules(filter(allow.allows, upstream), router, mapper, name, targets.get if lazy else None)
    filters = ExpressionFilters(config.expression_filters, config.case_sensitive, partial(utc_of, source))
    check_filters(filters, allow.allows, source, name, now=fresh and config.start is None)
    shape = BatchShape(
        settings.worker_count,
        settings.batch_rows,
        compact=settings.compact,
        multiple_rows=settings.multiple_rows,
        slice_bytes=LARGEST_BYTES,
    )
    table_rules = TableRules(
        name, allow, router, mapper, tables.structure, targets, tables.after, events, filters.of_table
    )
    table_rules.zone = traits.default_zone
    table_rules.is_sequence = lambda table: (
        (tables.is_late(table) or tables.find(table) is None)
        and answer_of(source, lambda connection: is_sequence(connection, table))
    )
    backfiller = Backfiller(source, table_rules)
    statements = Statements(name, traits, tables, rules, ownership, backfiller, events)
    groups: ShardingGroups | None = None
    if config.optimistic:
        ends = store, rules, table_rules, tables.find_or_presume, config.shard_wait_alert_seconds, peers
        groups = merged = OptimisticGroups(*ends, dialect=statements.traits.dialect, strict=config.strict)
        table_rules.fills = merged.fills
        statements.sharded = OptimisticStatements(groups, config.shard_drop)
    elif config.pessimistic:
        groups = ShardingGroups(store, rules, table_rules, tracker.get, config.shard_wait_alert_seconds, peers)
        statements.sharded = ShardedStatements(groups, config.shard_drop)
    kind = cache(lambda: store.on_target(partial(target_kind, from_mysql=not statements.traits.mariadb)))
    stops_at_values, clamps = config.json_values == "stop", config.time_values == "clamp"
    if stops_at_values:
        table_rules.documents = lambda table, there: frozenset(
            one.name for find in (documents, texts_of_documents) for one in find(table, there, kind())
        )
    if clamps:
        table_rules.clamped = lambda table, there: frozenset(one.name for one in times(table, there, kind()))
    coarse_keys = CoarseKeys(targets.get, partial(collation_difference, source, store.endpoint))
    unit = SyncUnit(
        source=name,
        store=store,
        planner=Planner(
            name,
            store.meta,
            store.endpoint,
            shape,
            slots,
            settings.on_missing_row,
            len(config.peers) == 1,
            coarse_keys=None if config.leaves_out("tidb_collations", "target_keys") else coarse_keys,
            alterations=ToldAlterations(name, targets.get, kind, converts=not stops_at_values, clamps=clamps),
            limited=config.target.max_connections > 0,
            exactly_once=exact,
        ),
        rules=table_rules,
        statements=statements,
        groups=groups,
        relay=relay,
        run_batch=run,
        newest=lambda: answer_of(source, locate),
        flush_seconds=settings.checkpoint_flush_interval_seconds,
        delivery=Delivery(exact, settings.safe_mode, settings.safe_mode_duration_seconds),
    )
    return unit, first
