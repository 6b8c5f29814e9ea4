"""Explains a shard's statement in `shard-mode: optimistic`: its effect on the target, this shard and the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unshard.ddl.context import Context
from unshard.ddl.evaluate import definition_of, evaluate, operations
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import AlterOperation, StatementRules
from unshard.ddl.prepare import RoutedDdl, UpstreamTable, in_targets_words
from unshard.ddl.rewrite import routed
from unshard.ddl.statement import Ddl
from unshard.explain.ends import Ends
from unshard.explain.finding import TAKEN, RuleFinding
from unshard.model.table import Table, TableName
from unshard.mysql.tidb import is_tidb
from unshard.schema.definition import Dialect
from unshard.schema.text import to_table
from unshard.schema.words import NotUnderstoodError
from unshard.shard.merged_difference import difference
from unshard.shard.merged_parts import ShardId, StructureRequest
from unshard.shard.merged_step import barrier_of
from unshard.shard.merged_table import MergedTable
from unshard.shard.shown_text import as_shown

WAITS, AT_ONCE, LATER, UNKNOWN = "waits", "at once", "with the last shard", "unknown"


@dataclass(frozen=True, slots=True)
class MergedOutcome:
    """The outcome of a shard's statement. `verdict` is WAITS, AT_ONCE, LATER or UNKNOWN.

    `statements` run on the target as soon as the shard has met the statement.
    """

    verdict: str
    findings: tuple[RuleFinding, ...]
    statements: tuple[str, ...] = ()


def explain_merged(source: str, own: StatementRules, found: Sequence[AlterOperation], ends: Ends) -> MergedOutcome:
    """Return the outcome of one statement's operations, all on one shard, if the source ran the statement now."""
    run = [part for piece in found for part in piece.run]
    name = run[0].tables[0]
    target = own.route(name)
    merged = (ends.merged or {}).get(target)
    shard = ShardId(source, name)
    if merged is None or merged.after is None or shard not in merged.shards:
        return _said(UNKNOWN, "the task has not registered this shard yet: start the task, then ask again")
    state = merged.shards[shard]
    if state.request is not None:
        wait = merged.evaluate().waits.get(shard)
        why = wait.why if wait is not None else "the next look at the target"
        return _said(WAITS, f"the shard waits with an earlier statement already: {why}")
    before = to_table(state.structure, name, merged.dialect)
    try:
        after = before
        for ddl in run:
            after = _behind(ddl, after, merged.dialect)
        steps = [step for ddl in run for step in operations(ddl)]
        last = as_shown(definition_of(after, merged.dialect))
    except NotUnderstoodError as error:
        return _said(WAITS, f"its effect is not computed ({error}): it is for all shards at once")
    barrier = barrier_of(state.structure, last, steps)
    texts = tuple(routed(ddl, own.route, own.route_schema).text for ddl in run)
    asked = merged.ask(shard, StructureRequest("explained", last, barrier, texts))
    decision = asked.evaluate()
    if shard in decision.barrier:
        barrier = barrier or "the target has this table's rows alone"
        return replace(_said(AT_ONCE, f"{barrier}: a barrier, and no other shard is missing"), statements=texts)
    if shard in decision.waits:
        why = decision.waits[shard].why
        return _said(WAITS, f"{barrier}: a barrier; {why}" if barrier else why)
    change = next(one for one in decision.changes if one.shards == (shard,))
    text = difference(target, merged.after, change.after, merged.dialect)
    done = asked.done(change)
    findings = list(_rows_of_others(done, shard))
    leaving = sorted(done.leaving.keys() - merged.leaving.keys())
    if leaving:
        told = f"no shard has {', '.join(leaving)} then: dropped when all sources have taken note"
        findings.append(RuleFinding("sharding", TAKEN, told))
    if not text and not leaving:
        told = "nothing is run: the target has what this shard needs, or keeps what other shards have"
        return MergedOutcome(LATER, (RuleFinding("sharding", TAKEN, told), *findings))
    statements = _in_targets_words(ends, own, target, merged, text) if text else ()
    findings.insert(0, RuleFinding("sharding", TAKEN, "no shard waits: the target gets what the join changes by"))
    return MergedOutcome(AT_ONCE, tuple(findings), statements)


def _said(verdict: str, text: str) -> MergedOutcome:
    return MergedOutcome(verdict, (RuleFinding("sharding", TAKEN if verdict != UNKNOWN else UNKNOWN, text),))


def _behind(ddl: Ddl, table: Table, dialect: Dialect) -> Table:
    made = evaluate(ddl, lambda _: table, lambda _: None, dialect).get(ddl.tables[0])
    return made if made is not None else table


def _rows_of_others(done: MergedTable, shard: ShardId) -> list[RuleFinding]:
    """Return findings on the values that rows get in columns that their shard lacks after the statement."""
    columns = done.noted(shard.source).seen.get(shard.source)
    found = []
    for name, rule in sorted(done.rules.items()):
        lacking = [one for one, state in done.shards.items() if state.structure.column(name) is None]
        if columns is None or not lacking or name in columns.leaving:
            continue
        who = ", ".join(map(str, lacking[:5])) + (f" and {len(lacking) - 5} more" if len(lacking) > 5 else "")
        found.append(RuleFinding("rows", TAKEN, f"rows of {who} get {rule} in column {name}"))
    return found


def _in_targets_words(
    ends: Ends, own: StatementRules, target: TableName, merged: MergedTable, text: str
) -> tuple[str, ...]:
    assert merged.after is not None
    context = Context(target.schema, mariadb=merged.dialect is Dialect.MARIADB)
    upstream = UpstreamTable(to_table(merged.after, target, merged.dialect)) if is_tidb(ends.target) else None
    made = in_targets_words(ends.target, [RoutedDdl(classify_ddl(text, context), upstream)], own)
    return tuple(ddl.text for ddl in made)
