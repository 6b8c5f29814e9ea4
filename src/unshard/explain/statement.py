"""Explains a statement of one source: its operations, the outcome of each rule for them, and the SQL on the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from unshard.ddl.context import Context
from unshard.ddl.events import BY_COLUMN, dm_events
from unshard.ddl.pieces import BLOCK_ALLOW, AlterOperation, StatementRules, StructureOf, all_pieces, with_routed_away
from unshard.ddl.prepare import prepare, to_run
from unshard.ddl.rewrite import routed, split
from unshard.ddl.statement import Ddl, Skipped
from unshard.errors import UnshardError, Where
from unshard.explain import names
from unshard.explain.ends import Ends
from unshard.explain.finding import (
    LEFT_OUT,
    STOPPING,
    STOPS,
    TAKEN,
    Explained,
    OperationFindings,
    RuleFinding,
    TargetStatement,
    asked,
    stopped,
)
from unshard.explain.merged import LATER, UNKNOWN, WAITS, explain_merged
from unshard.model.position import Position
from unshard.model.table import Table, TableName
from unshard.sync.statements.event_filter import classify_logged, event_in, filtered_names, judge_operation
from unshard.sync.statements.reader import COORDINATED
from unshard.sync.statements.refused import refuse_merged, refuse_shared_schema
from unshard.transform.source_rules import SourceRules
from unshard.worker.source_facts import statement_rules

SKIPPED, NOTHING, RUNS = "skipped", "nothing", "runs"
_NOTHING_KEPT = "DDL-025"


@dataclass(frozen=True, slots=True)
class Asked:
    """The statement to explain, with the session that runs it on the source.

    `mariadb` is used only if no server is asked.
    """

    sql: str
    schema: str = ""
    sql_mode: str = ""
    mariadb: bool = True


def explain_statement(rules: SourceRules, asked_for: Asked, ends: Ends | None) -> Explained:
    """Explain a statement. Without `ends` it is pure, and no structure is known."""
    context = Context(asked_for.schema, asked_for.sql_mode, mariadb=asked_for.mariadb, where=Where(source=rules.source))
    if ends is not None:
        traits = ends.traits
        context = replace(context, mariadb=traits.mariadb, lower_case_names=traits.lower_case_names)
    try:
        parsed = classify_logged(asked_for.sql, context, rules.events)
    except STOPPING as error:
        return _stops(rules, error, (OperationFindings("", (stopped("parsed", error),)),))
    if isinstance(parsed, Skipped):
        text = f"passed over: {parsed.reason}"
        group = OperationFindings("", (RuleFinding("parsed", SKIPPED, text, parsed.reason),))
        return Explained(rules.source, SKIPPED, f"nothing is run, it is {text}", (group,))
    return _explain(rules, parsed, ends)


def _explain(rules: SourceRules, parsed: Ddl, ends: Ends | None) -> Explained:
    structure: StructureOf = ends.table if ends is not None else _unknown
    own = statement_rules(rules, ends.records if ends is not None else None)
    own = replace(own, judge=partial(judge_operation, rules.events))
    groups = [OperationFindings("", (_parsed(parsed),))]
    if ends is not None and _without_effect(parsed, ends):
        text = "IF NOT EXISTS: what it makes is there, so it did nothing upstream"
        groups.append(OperationFindings("", (RuleFinding("effect", NOTHING, text),)))
        return Explained(rules.source, NOTHING, f"nothing is run: {text}", tuple(groups))
    try:
        found = all_pieces(parsed, own, structure)
    except STOPPING as error:
        alone = [AlterOperation(single, (single,)) for single in split(parsed)]
        groups += [_group(rules, piece, structure) for piece in alone]
        if error.code == _NOTHING_KEPT and ends is None:
            text = "what was run on the ghost is run on the table; --connect reads it from the target"
            groups.append(OperationFindings("", (RuleFinding("online-ddl", "unknown", text),)))
            return Explained(rules.source, "unknown", text, tuple(groups))
        return _stops(rules, error, tuple(groups))
    groups += [_group(rules, piece, structure) for piece in found]
    kept = [piece for piece in found if not piece.dropped]
    if not to_run(kept, own):
        return Explained(rules.source, NOTHING, f"nothing is run: {_why_nothing(found)}", tuple(groups))
    return _on_target(rules, own, kept, groups, ends)


def _on_target(
    rules: SourceRules,
    own: StatementRules,
    kept: Sequence[AlterOperation],
    groups: list[OperationFindings],
    ends: Ends | None,
) -> Explained:
    """Explain the statements that run on the target, or the error that stops the task before them."""
    refused = None
    if ends is not None and ends.merged is not None and _is_coordinated(kept):
        return _merged(rules, own, kept, groups, ends)
    if ends is not None:
        shared, refused = asked("sharding", lambda: _sharding(rules, own, kept, ends))
        groups.append(OperationFindings("", tuple(shared)))
    else:
        text = "not known without --connect: a table that shares its target with others stops the task (SYNC-011)"
        groups.append(OperationFindings("", (RuleFinding("sharding", "unknown", text),)))
    try:
        texts = _written(rules.source, own, kept, ends)
    except STOPPING as error:
        return _stops(rules, refused or error, (*groups, OperationFindings("", (stopped("target", error),))))
    written = tuple(TargetStatement(text) for text in texts)
    if refused is not None:
        return replace(_stops(rules, refused, tuple(groups)), written=written, by_hand=True)
    if not written:
        text = "nothing is run: the target has nothing that it would change"
        return Explained(rules.source, NOTHING, text, tuple(groups))
    count = "one statement" if len(written) == 1 else f"{len(written)} statements"
    return Explained(rules.source, RUNS, f"runs {count} on the target", tuple(groups), written)


def _is_coordinated(kept: Sequence[AlterOperation]) -> bool:
    return any(part.kind in COORDINATED for piece in kept for part in piece.run)


def _merged(
    rules: SourceRules, own: StatementRules, kept: Sequence[AlterOperation], groups: list[OperationFindings], ends: Ends
) -> Explained:
    """Explain a shard's statement in optimistic mode, as far as the task's records go."""
    try:
        found = explain_merged(rules.source, own, kept, ends)
    except STOPPING as error:
        return _stops(rules, error, (*groups, OperationFindings("", (stopped("sharding", error),))))
    groups.append(OperationFindings("", found.findings))
    written = tuple(TargetStatement(text) for text in found.statements)
    says = {
        WAITS: (WAITS, "this shard's table waits; all others go on"),
        UNKNOWN: (UNKNOWN, "not known: the task has not registered this shard"),
        LATER: (NOTHING, "nothing is run on the target now, and the shard goes on"),
    }
    count = "one statement" if len(written) == 1 else f"{len(written)} statements"
    verdict, text = says.get(found.verdict, (RUNS, f"runs {count} on the target at once, and the shard goes on"))
    return Explained(rules.source, verdict, text, tuple(groups), written)


def _stops(rules: SourceRules, error: UnshardError, groups: tuple[OperationFindings, ...]) -> Explained:
    return Explained(rules.source, STOPS, f"the task stops with {error.code}", groups, error=error)


def _written(source: str, own: StatementRules, kept: Sequence[AlterOperation], ends: Ends | None) -> list[str]:
    if ends is None:
        return [routed(ddl, own.route, own.route_schema).text for ddl in to_run(kept, own)]
    at = Position("", 0)
    if not ends.pessimistic and ends.merged is None:
        kept = with_routed_away(kept, ends.own_names(source), own)
    prepared = prepare(ends.target, kept, ends.tracker, own, at, at)
    return [step.statement for step in prepared.intent.steps] if prepared.intent is not None else []


def _sharding(rules: SourceRules, own: StatementRules, kept: Sequence[AlterOperation], ends: Ends) -> list[RuleFinding]:
    """Return the finding on sharding. Raises SyncError SYNC-011 or 074 as a run does without `shard-mode`."""
    if ends.merged is not None:
        return [RuleFinding("sharding", TAKEN, "shard-mode: optimistic: what it does to merged tables is done at once")]
    if ends.pessimistic:
        if _is_coordinated(kept):
            return [RuleFinding("sharding", TAKEN, "it waits until all tables that are merged with this one have it")]
        return [
            RuleFinding("sharding", TAKEN, "shard-mode: pessimistic: what it does to merged tables is done at once")
        ]
    known = ends.own_names(rules.source)
    for ddl in (part for piece in kept for part in piece.run):
        if ddl.drops_schema:
            refuse_shared_schema(ends.target, ddl, known, own)
        refuse_merged(ddl, known, own, lambda target: len(ends.landing(target)) > 1)
    return [RuleFinding("sharding", TAKEN, "no other table lands where it does")]


def _without_effect(parsed: Ddl, ends: Ends) -> bool:
    for name in parsed.tables:
        ends.table(name)
    return ends.tracker.without_effect(parsed)


def _parsed(ddl: Ddl) -> RuleFinding:
    on = f"schema {ddl.schema}" if ddl.kind.on_schema else ", ".join(map(str, ddl.tables))
    facts = {"schema": ddl.schema, "tables": [str(name) for name in ddl.tables]}
    return RuleFinding("parsed", ddl.kind.value, f"{ddl.kind} on {on}; no built-in rule passes it over", facts=facts)


def _group(rules: SourceRules, piece: AlterOperation, structure: StructureOf) -> OperationFindings:
    found: list[RuleFinding] = []
    every = tuple(dict.fromkeys(filtered_names(piece.ddl)))
    for name in every:
        helper = names.online_ddl(rules, name)
        is_helper = name.table and helper.says == LEFT_OUT
        found.append(helper if is_helper else names.block_allow(rules, name, named=len(every) > 1))
    for part, verdict in piece.parts:
        event = event_in(piece.logged or piece.ddl, part, structure)
        named = event.name if event is not None else "no event"
        also = sorted(event.also) if event is not None else []
        concerning = tuple(dict.fromkeys(rule for n in filtered_names(part) for rule in rules.events.concerning(n)))
        own = part.text if part.parts_at is None else part.text[part.parts_at :]
        told = f"{named} ({', '.join(also)})" if also else named
        told = f"{told}, {own}" if len(piece.parts) > 1 else told
        if structure is _unknown and BY_COLUMN in dm_events(part):
            told += " as far as its text tells, --connect knows the column"
        facts: dict[str, object] = {"event": named, "also": also, "part": part.text}
        found.append(names.event_finding(told, verdict, concerning, facts))
    if not piece.dropped:
        for name in every:
            found += asked("route", lambda name=name: [names.route(rules, name)])[0]  # type: ignore[misc]
    notes = [note for note in piece.notes if not (piece.dropped and note.step == BLOCK_ALLOW)]  # reported by name above
    found += [RuleFinding(note.step, "step", note.why) for note in notes]
    return OperationFindings(piece.ddl.text, tuple(found))


def _why_nothing(found: Sequence[AlterOperation]) -> str:
    whys = dict.fromkeys(note.why for piece in found for note in piece.notes)
    return "; ".join(whys) or "the table on the target has columns that names fill, and is made by hand"


def _unknown(_: TableName) -> Table | None:
    return None
