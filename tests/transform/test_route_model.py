"""Routes against a plain model of them: every rule is tried on every name, patterns by hand-written matching."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.config.rules import RouteRule
from unshard.errors import ConfigError
from unshard.model.table import TableName
from unshard.transform.route import Router

LETTERS = "abB_1"
names = st.text(LETTERS, min_size=1, max_size=4)
pieces = st.sampled_from([*LETTERS, "?", "[ab]", "[!a]", "[a-b1]"])
wildcards = st.tuples(st.lists(pieces, min_size=1, max_size=3), st.booleans()).map(
    lambda parts: "".join(parts[0]) + "*" * parts[1]
)
expressions = st.sampled_from(["~a", "~^a", "~b$", "~^a.*1$", "~A|b", "~_[0-9]+"])
patterns = st.one_of(wildcards, expressions, st.just("*"))
rules = st.lists(
    st.tuples(patterns, st.none() | patterns, st.sampled_from(["x", "y"]), st.none() | st.just("t")), max_size=4
)


def matches(pattern: str, name: str, case_sensitive: bool) -> bool:
    if pattern.startswith("~"):
        return re.search(pattern[1:], name, 0 if case_sensitive else re.IGNORECASE) is not None
    return wildcard(*((pattern, name) if case_sensitive else (pattern.lower(), name.lower())))


def wildcard(pattern: str, name: str) -> bool:
    """One character of the pattern after the other."""
    if not pattern or pattern == "*":
        return pattern == "*" or not name
    if not name:
        return False
    if pattern[0] == "?":
        return wildcard(pattern[1:], name[1:])
    if pattern[0] == "[":
        inside, _, rest = pattern[1:].partition("]")
        members = set("".join("ab" if part == "a-b" else part for part in re.findall("a-b|.", inside.lstrip("!"))))
        return ((name[0] in members) != inside.startswith("!")) and wildcard(rest, name[1:])
    return pattern[0] == name[0] and wildcard(pattern[1:], name[1:])


@given(rules, names, names, st.booleans())
def test_every_name_goes_where_the_model_says(
    drawn: list[tuple[str, str | None, str, str | None]], schema: str, table: str, case_sensitive: bool
) -> None:
    forms = {}
    for number, (schemas, tables, target_schema, target_table) in enumerate(drawn):
        form = {"schema-pattern": schemas, "target-schema": target_schema}
        if tables is not None:
            form |= {"table-pattern": tables} | ({"target-table": target_table} if target_table else {})
        forms[f"r{number}"] = RouteRule.model_validate(form)
    router = Router(forms, case_sensitive)

    fitting = [rule for rule in forms.values() if matches(rule.schema_pattern, schema, case_sensitive)]
    of_table = [r for r in fitting if r.table_pattern and matches(r.table_pattern, table, case_sensitive)]
    of_schema = [r for r in fitting if not r.table_pattern]
    name = TableName(schema, table)
    level = of_table or of_schema
    clash = len(level) > 1
    expected = name if not level else TableName(level[0].target_schema, level[0].target_table or table)
    if clash:
        with pytest.raises(ConfigError) as refused:
            router.route(name)
        assert refused.value.code == "CONFIG-006"
    else:
        assert router.route(name) == expected
    if len(of_schema) > 1:
        with pytest.raises(ConfigError):
            router.route_schema(schema)
    else:
        assert router.route_schema(schema) == (of_schema[0].target_schema if of_schema else schema)
