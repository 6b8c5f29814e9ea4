"""YAML text to data: scalars as written, lines, duplicates, merges, syntax errors."""

from __future__ import annotations

import pytest

from unshard.config.document import parse_document
from unshard.errors import ConfigError


def test_scalars_stay_as_written_and_only_plain_null_is_nothing() -> None:
    text = 'a: 0123\nb: on\nc: 1e3\nd: ~\ne:\nf: ""\ng: "null"\nh: 2024-01-01'
    expected = {"a": "0123", "b": "on", "c": "1e3", "d": None, "e": None, "f": "", "g": "null", "h": "2024-01-01"}
    assert parse_document(text, "t").data == expected


def test_lines_are_known_by_path() -> None:
    document = parse_document("a: 1\nb:\n  - c: 2\n  - d:\n      e: 3\n", "t")
    assert document.lines == {("a",): 1, ("b",): 2, ("b", 0): 3, ("b", 0, "c"): 3, ("b", 1): 4, ("b", 1, "d"): 4,
                              ("b", 1, "d", "e"): 5}  # fmt: skip


def test_a_key_written_twice_is_a_problem_with_both_lines() -> None:
    (found,) = parse_document("a:\n  b: 1\n  c: 2\n  b: 3\n", "t").problems
    assert found.text == "a.b: written twice, on lines 2 and 4; keep one"


def test_merge_keys_give_way_to_own_keys() -> None:
    document = parse_document("x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\nz: {<<: [{a: 4}, {a: 5, c: 6}]}", "t")
    assert document.data["y"] == {"a": "1", "b": "3"}
    assert document.data["z"] == {"a": "4", "c": "6"}
    assert document.problems == []


@pytest.mark.parametrize(
    ("value", "kind"), [("!geheim", "a tag"), ("&geheim", "an anchor"), ("!!binary YQ==", "a tag")]
)
def test_a_value_that_yaml_would_take_for_its_own_sign_is_a_problem(value: str, kind: str) -> None:
    (found,) = parse_document(f"a: {{b: 1}}\npassword: {value}\n", "t").problems
    assert kind in found.text
    assert "geheim" not in found.text


def test_an_anchor_before_a_value_is_none() -> None:
    document = parse_document("a: &x 5\nb: *x\nc: !!str 5\n", "t")
    assert (document.data, document.problems) == ({"a": "5", "b": "5", "c": "5"}, [])


def test_a_merge_of_something_else_is_a_problem() -> None:
    assert "`<<` takes a mapping" in parse_document("a: {<<: text}", "t").problems[0].text


def test_an_alias_within_itself_is_a_problem_and_not_a_loop() -> None:
    assert "contains itself" in parse_document("a: &a\n  b: *a\n", "t").problems[0].text
    assert "contains itself" in parse_document("a: &a [*a]\n", "t").problems[0].text


def test_aliases_that_stand_for_more_than_memory_holds_are_refused() -> None:
    """Nine lines stand for 10 ** 9 values: neither a viewer's request nor a file may end the process by them."""
    ten = "[" + ", ".join(["{}"] * 10) + "]"
    lists = [f"x0: &a0 {ten.format(*range(10))}"]
    lists += [f"x{number}: &a{number} {ten.format(*[f'*a{number - 1}'] * 10)}" for number in range(1, 9)]
    maps = ["y0: &b0 {a: 1}", *(f"y{n}: &b{n} {{a: *b{n - 1}, b: *b{n - 1}, <<: *b{n - 1}}}" for n in range(1, 40))]
    for lines in (lists, maps):
        with pytest.raises(ConfigError, match="CONFIG-001") as caught:
            parse_document("\n".join(lines), "t")
        assert "aliases (*name) stand for more than 200,000 values" in str(caught.value)
        assert "line " in caught.value.cause


def test_a_large_file_is_read_with_and_without_aliases() -> None:
    rules = [f"r{number}" for number in range(10_000)]
    routes = [f"  {name}: {{schema-pattern: s, table-pattern: t, target-schema: s, target-table: t}}" for name in rules]
    lines = ["routes:", *routes, f"all: &all [{', '.join(rules)}]", *(f"i{number}: *all" for number in range(19))]
    document = parse_document("\n".join(lines), "t")
    assert len(document.data["routes"]) == 10_000
    assert document.data["i18"] == rules
    assert document.problems == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", "line 2, column 4, at b"),
        ("a: 1\n\tb: 2\n", "line 2, column 1"),
        ("password: \"geheim\nb: 'x\n", "line 1, column 11, at password"),
        ("a: b: c\n", "line 1, column 5"),
        ("a: *nobody\n", "line 1, column 4"),
        ("password: *geheim\n", "line 1, column 11, at password: a value can't begin with *"),
        ("password: @geheim\n", "line 1, column 11, at password: a value can't begin with @"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1"),
        ("a: \x00\n", "line 1, column 4, at a: a control character"),
        ("- a\n", "line 1: the file has to begin with a key"),
        ("", "line 1: the file is empty"),
    ],
)
def test_text_that_is_not_a_yaml_mapping_is_refused_with_its_line(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, "task.yaml")
    assert caught.value.code == "CONFIG-003"
    assert caught.value.where.file == "task.yaml"
    assert why in caught.value.cause
    assert "geheim" not in str(caught.value)
