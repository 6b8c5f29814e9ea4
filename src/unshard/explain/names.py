"""Explains the rules that go by a table's name. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from unshard.config.event_names import ROW_EVENTS, EventName
from unshard.explain.finding import LEFT_OUT, NONE, STOPS, TAKEN, RuleFinding
from unshard.model.table import TableName
from unshard.transform.block_allow import Passage
from unshard.transform.column_mapper import SourcePart
from unshard.transform.column_mapping import ColumnMapping, apply_mapping
from unshard.transform.event_filter import Verdict
from unshard.transform.online_tables import OnlineTablePart
from unshard.transform.source_rules import SourceRules

_EXAMPLE_ID, _EXAMPLE_TEXT = 1, "abc"


def online_ddl(rules: SourceRules, name: TableName) -> RuleFinding:
    """Return whether the name is of a helper table of gh-ost or pt-osc, and of which table."""
    part, table, rule = rules.online.told(name)
    facts = {"part": part.value, "table": str(table)}
    if part is OnlineTablePart.REAL:
        return RuleFinding("online-ddl", NONE, "no helper table of gh-ost or pt-osc", facts=facts)
    return RuleFinding("online-ddl", LEFT_OUT, f"{name} is {part} of {table}, by {rule}", rule, facts)


def block_allow(rules: SourceRules, name: TableName, *, named: bool = False) -> RuleFinding:
    """Return the finding on a table, or on a schema if the table's name is empty.

    `named`: the text begins with the name.
    """
    passage = rules.allow.judge(name) if name.table else rules.allow.judge_schema(name.schema)
    found = _passage("block-allow-list", passage, str(name).removesuffix("."))
    return replace(found, text=f"{name}: {found.text}") if named else found


def dumped(rules: SourceRules, name: TableName) -> RuleFinding:
    """Return the finding on the dump's own choice of tables, which takes the place of the block-allow list there."""
    return _passage("dump", rules.dumped(name), str(name))


def _passage(kind: str, passage: Passage, name: str) -> RuleFinding:
    says = TAKEN if passage.passes else LEFT_OUT
    if passage.pattern:
        text = f"{says} by {passage.rule}: {passage.pattern}"
    elif not passage.rule:
        text = "taken: no list has a say"
    elif passage.rule in ("system schema", "online DDL"):
        text = f"left out: it is {'of a system schema' if passage.rule == 'system schema' else 'a helper table'}"
    elif passage.passes:
        text = f"taken by {passage.rule}"
    else:
        text = f"left out: nothing in {passage.rule} matches"
    return RuleFinding(kind, says, text, passage.rule, {"name": name, "pattern": passage.pattern})


def row_events(rules: SourceRules, name: TableName) -> Iterator[RuleFinding]:
    """Yield the event filter's finding on each kind of row change."""
    for word in ROW_EVENTS:
        verdict = rules.events.judge(name, EventName(word))
        yield event_finding(word, verdict, rules.events.concerning(name), {"event": word})


def event_finding(
    event: str, verdict: Verdict | None, concerning: tuple[str, ...], facts: dict[str, object]
) -> RuleFinding:
    """Return the finding on one event.

    `concerning` are the rules for the name; `verdict` is that of the rule that decides.
    """
    facts = {**facts, "rules": list(concerning), "action": verdict.says if verdict else "", "by": ""}
    if verdict is not None:
        says = STOPS if verdict.action == "Error" else LEFT_OUT
        text = f"{event}: {says} by {verdict.rule} ({verdict.says}, by its {verdict.by})"
        return RuleFinding("event-filter", says, text, verdict.rule, {**facts, "by": verdict.by})
    if not concerning:
        return RuleFinding("event-filter", NONE, f"{event}: taken, no rule is for this name", facts=facts)
    text = f"{event}: taken, {' and '.join(concerning)} let it pass"
    return RuleFinding(
        "event-filter", TAKEN, text if len(concerning) > 1 else text.replace(" let ", " lets "), facts=facts
    )


def route(rules: SourceRules, name: TableName) -> RuleFinding:
    """Return the finding on the table's or schema's target name. Raises ConfigError CONFIG-006."""
    if not name.table:
        chosen_schema, target = rules.router.schema_rule(name.schema), rules.router.route_schema(name.schema)
        facts = {"name": name.schema, "target": target, "level": "schema", "behind": []}
        if chosen_schema is None:
            return RuleFinding("route", NONE, f"no schema rule: it stays {target}", facts=facts)
        rule = f"routes.{chosen_schema}"
        return RuleFinding("route", "routed", f"{name.schema} → {target}, by schema rule {rule}", rule, facts)
    chosen, there = rules.router.choice(name), rules.router.route(name)
    if chosen is None:
        facts = {"name": str(name), "target": str(there), "level": "", "behind": []}
        return RuleFinding("route", NONE, f"no rule: it stays {there}", facts=facts)
    level = "table" if chosen.of_table else "schema"
    behind = [f"routes.{rule}" for rule in chosen.behind]
    later = f"; behind it: {', '.join(behind)}" if behind else ""
    facts = {"name": str(name), "target": str(there), "level": level, "behind": behind}
    text = f"{name} → {there}, by {level} rule routes.{chosen.rule}{later}"
    return RuleFinding("route", "routed", text, f"routes.{chosen.rule}", facts)


def extracted(rules: SourceRules, name: TableName) -> Iterator[RuleFinding]:
    """Yield findings on the columns that a route fills. Raises ConfigError CONFIG-016."""
    for one in rules.router.extracted(name, rules.source):
        text = f"column {one.column} = '{one.value}' in every row"
        yield RuleFinding("extract", "filled", text, f"routes.{one.rule}", {"column": one.column, "value": one.value})


def column_mapping(rules: SourceRules, name: TableName) -> Iterator[RuleFinding]:
    """Yield the finding on the column that a column mapping changes, with an example.

    Raises ConfigError CONFIG-006 to CONFIG-008.
    """
    mapping = rules.mapper.mapping_for(name)
    if mapping is None:
        return
    parts = () if mapping.of_text else rules.mapper.source_parts(mapping.rule, name)
    before, after = _example(mapping)
    facts = {
        "sourceColumn": mapping.source_column,
        "targetColumn": mapping.target_column,
        "bits": [{"part": p.part, "bits": p.bits, "number": p.number, "shift": p.shift} for p in parts],
        "prefix": mapping.prefix,
        "suffix": mapping.suffix,
        "example": {"before": before, "after": after},
    }
    into = "" if mapping.source_column == mapping.target_column else f" of {mapping.source_column}"
    text = (
        f"column {mapping.target_column}{into} gets {_given(mapping, parts)}, so {before!r} becomes {after!r}, "
        f"by column-mappings.{mapping.rule}"
    )
    yield RuleFinding("column-mapping", "mapped", text, f"column-mappings.{mapping.rule}", facts)


def _given(mapping: ColumnMapping, parts: tuple[SourcePart, ...]) -> str:
    if mapping.of_text:
        return f"prefix '{mapping.prefix}'" if mapping.prefix else f"suffix '{mapping.suffix}'"
    told = ", ".join(f"{part.part} {part.number} ({part.bits} bits)" for part in parts)
    return told or "no bits: all parts of its arguments are empty"


def _example(mapping: ColumnMapping) -> tuple[int | str, int | str]:
    value: int | str = _EXAMPLE_TEXT if mapping.of_text else _EXAMPLE_ID
    kind = pa.string() if mapping.of_text else pa.int64()
    names = list(dict.fromkeys([mapping.source_column, mapping.target_column]))
    batch = pa.record_batch([pa.array([value], kind) for _ in names], names)
    after = apply_mapping(batch, mapping).column(len(names) - 1)[0].as_py()
    return value, after
