"""The picture of a task's routes: sources on the left, rules in the middle, targets on the right. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from unshard.errors import ConfigError
from unshard.explain.finding import LEFT_OUT, STOPS
from unshard.model.table import TableName
from unshard.transform.source_rules import SourceRules

SAME_NAME = "no rule: same name"
NOWHERE = "left out"
MOST_ON_A_SIDE = 40
"""So many nodes a column has at most; the smallest of more are one node."""
_WIDTHS = (300, 260, 320)
_LEFTS = (0, 430, 820)
WIDTH = 1140
_PORT, _GAP, _PAD = 24, 12, 8
_LONGEST = (36, 30, 38)
"""Characters of a name that a node shows."""


@dataclass(frozen=True, slots=True)
class RoutedTable:
    """One table of a source, with the target that it is routed to.

    `rule` decides the target, or that there is none; `target` is then empty. `origin`, `via` and `group` are the nodes
    of the picture that the table belongs to.
    """

    source: str
    name: TableName
    rule: str
    target: str
    says: str
    origin: str = ""
    via: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class RouteNode:
    """A box of the picture, with its coordinates in pixels. `kind`: `source`, `rule`, `target`, `left` or `stops`."""

    name: str
    kind: str
    count: int
    x: int
    y: int
    width: int
    height: int
    short: str


@dataclass(frozen=True, slots=True)
class RouteArrow:
    """An arrow of the picture between two nodes.

    `query` finds its tables; `path` is an SVG path; the count is drawn at `label_x`, `label_y`.
    """

    count: int
    query: tuple[tuple[str, str], ...]
    text: str
    kind: str
    path: str
    weight: int
    label_x: int
    label_y: int


@dataclass(frozen=True, slots=True)
class RoutePicture:
    """The picture of a task's routes: its nodes and arrows with their coordinates, in pixels."""

    height: int
    nodes: tuple[RouteNode, ...]
    arrows: tuple[RouteArrow, ...]


def routed_tables(rules: SourceRules, names: Iterable[TableName]) -> list[RoutedTable]:
    """Return the result of one source's rules for each of its tables. The units ask the same rules."""
    found = []
    for name in names:
        passage = rules.allow.judge(name)
        if not passage.passes:
            found.append(RoutedTable(rules.source, name, passage.rule or "block-allow-list", "", LEFT_OUT))
            continue
        try:
            chosen = rules.router.choice(name)
            target = str(rules.router.route(name))
        except ConfigError as error:
            found.append(RoutedTable(rules.source, name, error.code, "", STOPS))
            continue
        found.append(RoutedTable(rules.source, name, f"routes.{chosen.rule}" if chosen else SAME_NAME, target, ""))
    return found


def grouped(tables: Sequence[RoutedTable]) -> list[RoutedTable]:
    """Return the tables with their nodes: by schema and by target where these are few, else in groups."""
    origins = {(one.source, one.name.schema) for one in tables}
    by_schema = len(origins) <= MOST_ON_A_SIDE
    landing = Counter((one.rule, one.target) for one in tables if one.target)
    many = {rule for rule, count in Counter(rule for rule, _ in landing).items() if count > 4}
    found = []
    for one in tables:
        origin = f"{one.source}: {one.name.schema}" if by_schema else one.source
        group = one.target
        if one.target and one.rule in many and landing[one.rule, one.target] == 1:
            group = f"{one.target.partition('.')[0]}.*"
        found.append(replace(one, origin=origin, via=one.rule, group=group or _nowhere(one)))
    for key, words in (("origin", "more sources"), ("via", "more rules"), ("group", "more targets")):
        found = _few(found, key, words)
    return found


def chosen_tables(tables: Iterable[RoutedTable], origin: str, rule: str, group: str) -> list[RoutedTable]:
    """Return the tables of an arrow or a node; an empty word matches everything."""
    return [one for one in tables if origin in ("", one.origin) and rule in ("", one.via) and group in ("", one.group)]


def route_picture(tables: Sequence[RoutedTable]) -> RoutePicture:
    """Return the picture of tables that `grouped` returned.

    Each arrow has a port of its own, so that no counts overlap.
    """
    into = Counter((one.origin, one.via) for one in tables)
    out = Counter((one.via, one.group) for one in tables)
    said = {one.via: one.says for one in tables} | {one.group: one.says for one in tables}
    origins = sorted({origin for origin, _ in into})
    rules = sorted({rule for rule, _ in out}, key=lambda rule: (said[rule] != "", rule))
    groups = sorted({group for _, group in out}, key=lambda group: (said[group] != "", group))
    left = {name: [pair for pair in into if pair[0] == name] for name in origins}
    middle = {
        name: max([[pair for pair in into if pair[1] == name], [pair for pair in out if pair[0] == name]], key=len)
        for name in rules
    }
    right = {name: [pair for pair in out if pair[1] == name] for name in groups}
    columns = [_column(names, ports) for names, ports in ((origins, left), (rules, middle), (groups, right))]
    height = max(tops[-1] for tops in columns) if tables else 0
    shifts = [(height - tops[-1]) // 2 for tops in columns]
    sums: list[Counter[str]] = [Counter(), Counter(), Counter()]
    for one in tables:
        for column, name in enumerate((one.origin, one.via, one.group)):
            sums[column][name] += 1
    nodes, at = [], {}
    for column, names in enumerate((origins, rules, groups)):
        for number, name in enumerate(names):
            y = columns[column][number] + shifts[column]
            tall = columns[column][number + 1] - columns[column][number] - _GAP
            kind = ("source", _kind(said.get(name, ""), "rule"), _kind(said.get(name, ""), "target"))[column]
            at[column, name] = y, tall
            nodes.append(
                RouteNode(
                    name, kind, sums[column][name], _LEFTS[column], y, _WIDTHS[column], tall,
                    _short(name, _LONGEST[column]),
                )
            )  # fmt: skip
    arrows = [*_arrows(into, 0, origins, rules, at, said), *_arrows(out, 1, rules, groups, at, said)]
    return RoutePicture(height, tuple(nodes), tuple(arrows))


def _nowhere(one: RoutedTable) -> str:
    return "stops the task" if one.says == STOPS else NOWHERE


def _few(tables: list[RoutedTable], key: str, word: str) -> list[RoutedTable]:
    """Return the tables with the nodes of one column: the largest, and one for all others where they are too many."""
    counts = Counter(getattr(one, key) for one in tables)
    if len(counts) <= MOST_ON_A_SIDE:
        return tables
    largest = {name for name, _ in counts.most_common(MOST_ON_A_SIDE - 1)}
    rest = f"{len(counts) - len(largest):,} {word}"
    return [one if getattr(one, key) in largest else _renamed(one, key, rest) for one in tables]


def _renamed(one: RoutedTable, key: str, name: str) -> RoutedTable:
    if key == "origin":
        return replace(one, origin=name)
    return replace(one, via=name) if key == "via" else replace(one, group=name)


def _kind(says: str, usual: str) -> str:
    return {LEFT_OUT: "left", STOPS: "stops"}.get(says, usual)


def _column(names: Sequence[str], ports: dict[str, list[tuple[str, str]]]) -> list[int]:
    """Return the tops of the nodes, and after them the end of the column."""
    tops = [0]
    for name in names:
        tops.append(tops[-1] + max(34, _PORT * len(ports[name]) + _PAD) + _GAP)
    return tops


def _arrows(
    counts: Counter[tuple[str, str]],
    column: int,
    froms: Sequence[str],
    tos: Sequence[str],
    at: dict[tuple[int, str], tuple[int, int]],
    said: dict[str, str],
) -> Iterable[RouteArrow]:
    order_from, order_to = {n: i for i, n in enumerate(froms)}, {n: i for i, n in enumerate(tos)}
    leaving: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    coming: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for pair in sorted(counts, key=lambda pair: (order_from[pair[0]], order_to[pair[1]])):
        leaving[pair[0]].append(pair)
    for pair in sorted(counts, key=lambda pair: (order_to[pair[1]], order_from[pair[0]])):
        coming[pair[1]].append(pair)
    x1, x2 = _LEFTS[column] + _WIDTHS[column], _LEFTS[column + 1]
    words = ("origin", "rule") if column == 0 else ("rule", "group")
    for pair, count in counts.items():
        y1 = _port(at[column, pair[0]], leaving[pair[0]].index(pair), len(leaving[pair[0]]))
        y2 = _port(at[column + 1, pair[1]], coming[pair[1]].index(pair), len(coming[pair[1]]))
        bend = (x2 - x1) // 2
        yield RouteArrow(
            count,
            ((words[0], pair[0]), (words[1], pair[1])),
            f"{count:,} {'table' if count == 1 else 'tables'}: {pair[0]} → {pair[1]}",
            _kind(said.get(pair[1 - column], ""), "routed"),
            f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2 - 7} {y2}",
            min(9, 2 + len(f"{count}")),
            x1 + 8 if column == 0 else x2 - 14,
            (y1 if column == 0 else y2) - 7,
        )


def _port(node: tuple[int, int], number: int, of: int) -> int:
    top, height = node
    return top + round(height * (2 * number + 1) / (2 * of))


def _short(name: str, longest: int) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
