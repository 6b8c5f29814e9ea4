"""ShardingGroup: which tables are held, what is resolved when, what is read again."""

from __future__ import annotations

import pytest

from unshard.errors import ShardError
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.shard.group import Resync, ShardingGroup, TableState
from unshard.shard.group_keeper import ShardingGroupKeeper
from unshard.shard.same_ddl import normalised, same, same_but_for_places
from unshard.shard.sequence import DdlItem, side_by_side

TARGET = TableName("db", "t")
ONE, TWO, THREE, FOUR = (TableName("up", f"t_{number}") for number in (1, 2, 3, 4))
ADD_A, ADD_B = "ALTER TABLE `db`.`t` ADD a INT", "ALTER TABLE `db`.`t` ADD b INT"


def at(offset: int) -> Location:
    return Location(Position("bin.000001", offset))


def item(begin: int, *ddls: str) -> DdlItem:
    return DdlItem(at(begin), at(begin + 5), ddls)


def group(*tables: TableName) -> ShardingGroup:
    return ShardingGroup("src", TARGET, {table: TableState() for table in tables})


def test_a_table_that_has_met_the_ddl_is_held_and_the_others_are_not() -> None:
    waiting = group(ONE, TWO).meet(ONE, item(100, ADD_A))
    assert waiting.held == {ONE: at(105)}
    assert (waiting.first, waiting.ready) == (at(100), None)
    assert (waiting.synced, waiting.unsynced) == ((ONE,), (TWO,))


def test_the_last_table_makes_it_ready_and_resolving_asks_for_one_resync() -> None:
    ready = group(ONE, TWO).meet(ONE, item(100, ADD_A)).meet(TWO, item(200, ADD_A))
    assert ready.ready == item(200, ADD_A)
    after = ready.report().resolve(at(205))
    assert not after.reported
    resync = after.resync(at(205))
    assert resync is not None
    assert (resync.begin, resync.end, resync.windows) == (at(105), at(205), {ONE: (at(105), at(205))})
    assert after.held == {ONE: at(105)}
    assert after.resynced(at(150), at(205)).held == {ONE: at(150)}
    assert not after.resynced(at(205), at(205)).unresolved


def test_the_next_ddl_is_not_ready_before_the_changes_in_front_of_it_are_in() -> None:
    both = group(ONE, TWO).meet(ONE, item(100, ADD_A)).meet(ONE, item(150, ADD_B))
    both = both.meet(TWO, item(200, ADD_A)).meet(TWO, item(250, ADD_B)).resolve(at(255))
    assert both.ready is None
    resync = both.resync(at(255))
    assert resync is not None
    assert resync.windows == {ONE: (at(105), at(150)), TWO: (at(205), at(250))}
    caught_up = both.resynced(at(250), at(255))
    assert caught_up.ready == item(250, ADD_B)
    assert caught_up.resync(at(255)) is None
    assert caught_up.held == {ONE: at(155), TWO: at(255)}


def test_a_held_tables_range_is_read_once_over_several_ddl() -> None:
    state = group(ONE, TWO).meet(ONE, item(100, ADD_A)).meet(ONE, item(150, ADD_B)).meet(TWO, item(200, ADD_A))
    first = state.resolve(at(205))
    resync = first.resync(at(205))
    assert resync is not None
    assert resync.windows == {ONE: (at(105), at(150))}
    second = first.resynced(at(150), at(205)).meet(TWO, item(300, ADD_B)).resolve(at(305))
    resync = second.resync(at(305))
    assert resync is not None
    assert resync.windows == {ONE: (at(155), at(305))}


def test_another_ddl_or_order_is_refused_with_both_lists() -> None:
    state = group(ONE, TWO).meet(ONE, item(100, ADD_A)).meet(ONE, item(150, ADD_B))
    with pytest.raises(ShardError) as caught:
        state.meet(TWO, item(200, ADD_B))
    assert caught.value.code == "SHARD-001"
    assert caught.value.where.position == "bin.000001:200"
    assert _lines(caught.value) == [
        f"1 <> up.t_2: {ADD_B} (bin.000001:200)",
        f"up.t_1: {ADD_A} (bin.000001:100)",
        "2    up.t_2: nothing yet",
        f"up.t_1: {ADD_B} (bin.000001:150)",
    ]


def test_of_two_lists_what_is_the_same_is_shown_so_wherever_it_was_met() -> None:
    state = group(ONE, TWO).meet(ONE, item(100, ADD_A)).meet(ONE, item(150, ADD_B))
    with pytest.raises(ShardError) as caught:
        state.meet(TWO, item(200, "alter table db.t add column a integer")).meet(TWO, item(250, ADD_A))
    assert _lines(caught.value) == [
        "1 == up.t_2: alter table db.t add column a integer (bin.000001:200)",
        f"up.t_1: {ADD_A} (bin.000001:100)",
        f"2 <> up.t_2: {ADD_A} (bin.000001:250)",
        f"up.t_1: {ADD_B} (bin.000001:150)",
    ]


def test_a_statement_that_only_one_list_has_is_a_difference() -> None:
    lines = side_by_side("s2", [ADD_A], "s1", [ADD_A, ADD_B]).splitlines()
    assert [line.strip() for line in lines[2:]] == ["2 <> s2: nothing yet", f"s1: {ADD_B}"]


def _lines(error: ShardError) -> list[str]:
    return [line.strip() for line in error.cause.splitlines()]


def test_statements_are_the_same_whatever_their_blanks_comments_quotes_and_case() -> None:
    assert same([ADD_A], ["alter  table db.t /* now */ add `A` int"])
    assert not same([ADD_A], [ADD_B])
    assert not same([ADD_A], [ADD_A, ADD_B])
    assert normalised("ADD c TEXT DEFAULT 'A  b'") != normalised("ADD c TEXT DEFAULT 'a b'")


def test_the_normal_form_of_a_statement_that_only_sets_a_counter_still_names_its_table() -> None:
    assert normalised("ALTER /* gh-ost */ TABLE `t` AUTO_INCREMENT=7") == "alter table t"


@pytest.mark.parametrize(
    "other",
    [
        "ALTER TABLE db.t ADD COLUMN a INT",
        "ALTER TABLE db.t ADD a INTEGER;",
        "ALTER TABLE db.t ADD a INT, ALGORITHM=INPLACE, LOCK = NONE",
        "ALTER TABLE db.t ALGORITHM=INSTANT, ADD COLUMN a INT, lock=none",
        "ALTER TABLE db.t ADD a INT, ALGORITHM INPLACE, LOCK SHARED",
    ],
)
def test_what_says_how_and_not_what_does_not_count(other: str) -> None:
    assert same([ADD_A], [other])


def test_statements_of_a_session_in_which_a_backslash_is_a_letter() -> None:
    alter = "ALTER TABLE db.t ADD {} VARCHAR(9) DEFAULT 'C:\\'"
    assert same([alter.format("a")], [alter.format("`A`")])
    assert same_but_for_places([alter.format("a")], [alter.format("COLUMN a") + " FIRST"])
    assert not same([alter.format("a")], [alter.format("b")])


GH_OST = "alter /* gh-ost */ table `db`.`t` AUTO_INCREMENT={}"


@pytest.mark.parametrize(
    "other",
    [
        [ADD_A, GH_OST.format(9)],
        [ADD_A],
        ["ALTER TABLE db.t ADD COLUMN a INT, AUTO_INCREMENT = 9"],
        ["ALTER TABLE db.t AUTO_INCREMENT 9, ADD COLUMN a INT, ALGORITHM=INPLACE"],
    ],
)
def test_the_counter_of_a_shard_does_not_count(other: list[str]) -> None:
    """gh-ost from 1.1.1 on gives its copy the counter of the table, which is another one in each shard."""
    assert same([ADD_A, GH_OST.format(7)], other)
    assert same(other, [ADD_A, GH_OST.format(7)])
    assert same_but_for_places([ADD_A, GH_OST.format(7)], other)
    assert not same([ADD_B, GH_OST.format(7)], other)
    assert not same([GH_OST.format(7)], other)


def test_what_only_looks_so_counts() -> None:
    alter = "ALTER TABLE db.t"
    pairs = [
        ("RENAME COLUMN a TO b", "RENAME a TO b"),
        ("ADD `column` INT", "ADD INT"),
        ("ADD algorithm INT", "ADD INT"),
        ("ADD c INT AS (algorithm = 1)", "ADD c INT AS (algorithm = 2)"),
        ("CHANGE algorithm copy INT", "CHANGE algorithm inplace INT"),
        ("ADD COLUMN IF NOT EXISTS c INT", "ADD COLUMN c INT"),
        ("DROP COLUMN IF EXISTS c", "DROP COLUMN c"),
        ("ADD `integer` INT", "ADD `int` INT"),
        ("ADD CHECK (a >= b)", "ADD CHECK (a > b)"),
        ("ADD c INT, ALGORITHM=COPY, DROP d", "ADD c INT"),
        ("MODIFY a INT AUTO_INCREMENT", "MODIFY a INT"),
        ("DROP auto_increment, ADD c INT", "DROP c, ADD c INT"),
        ("ADD auto_increment INT", "ADD INT"),
    ]
    assert not any(same([f"{alter} {one}"], [f"{alter} {other}"]) for one, other in pairs)
    assert same([f"{alter} ADD KEY i (a)"], [f"{alter} ADD INDEX i (a)"])
    assert not same([f"{alter} ADD INDEX i (a)"], ["CREATE INDEX i ON db.t (a)"])


def test_a_new_table_with_the_newest_structure_waits_with_the_others() -> None:
    state = group(ONE, TWO).meet(ONE, item(100, ADD_A)).add(THREE, at(150), met=1)
    assert state.held == {ONE: at(105), THREE: at(150)}
    after = state.meet(TWO, item(200, ADD_A)).resolve(at(205))
    resync = after.resync(at(205))
    assert resync is not None
    assert resync.windows == {ONE: (at(105), at(205)), THREE: (at(150), at(205))}


def test_a_new_table_without_the_ddl_is_refused_once_it_is_reported() -> None:
    state = group(ONE).meet(ONE, item(100, ADD_A)).report()
    with pytest.raises(ShardError, match="SHARD-002"):
        state.add(TWO, at(150))
    assert state.add(TWO, at(150), met=1).ready is not None


def test_a_table_known_too_early_joins_with_its_create() -> None:
    state = group(ONE, TWO).meet(ONE, item(100, ADD_A)).add(TWO, at(150), met=1)
    assert state.ready is not None


def test_a_dropped_table_completes_the_group_and_keeps_what_is_held_of_it() -> None:
    state = group(ONE, TWO, THREE).meet(ONE, item(100, ADD_A)).meet(TWO, item(120, ADD_A))
    state = state.drop(ONE, at(150)).drop(THREE, at(170))
    assert state.ready == item(120, ADD_A)
    assert THREE not in state.tables
    after = state.resolve(at(175))
    resync = after.resync(at(175))
    assert resync is not None
    assert resync.windows == {ONE: (at(105), at(150)), TWO: (at(125), at(175))}
    assert set(after.resynced(at(175), at(175)).tables) == {TWO}


def test_a_table_that_meets_a_ddl_after_its_drop_is_there_again() -> None:
    """As where the copy of online DDL takes the name of a table that was dropped: its changes after it wait too."""
    state = group(ONE, TWO).meet(ONE, item(100, ADD_A)).drop(ONE, at(150), {"as": "dropped"})
    state = state.meet(ONE, item(160, ADD_B))
    assert state.unsynced == (TWO,)
    state = state.meet(TWO, item(200, ADD_A)).meet(TWO, item(220, ADD_B)).resolve(at(300))
    state = state.resynced(at(300), at(300)).resolve(at(300))
    resync = state.resync(at(300))
    assert resync is not None
    assert resync.windows == {ONE: (at(165), at(300)), TWO: (at(225), at(300))}
    assert set(state.resynced(at(300), at(300)).tables) == {ONE, TWO}


def test_a_table_created_again_goes_on_where_its_name_stood() -> None:
    state = group(ONE, TWO).meet(ONE, item(100, ADD_A)).drop(ONE, at(150))
    with pytest.raises(ShardError, match="SHARD-002"):
        state.add(ONE, at(160))
    again = state.add(ONE, at(160), met=1).meet(TWO, item(200, ADD_A)).resolve(at(205))
    resync = again.resync(at(205))
    assert resync is not None
    assert resync.windows == {ONE: (at(105), at(205))}


def test_a_renamed_table_is_held_under_both_names_in_turn() -> None:
    state = group(ONE, TWO).meet(ONE, item(100, ADD_A)).rename({ONE: THREE}, at(150), at(155))
    assert (state.synced, state.unsynced) == ((ONE, THREE), (TWO,))
    after = state.meet(TWO, item(200, ADD_A)).resolve(at(205))
    resync = after.resync(at(205))
    assert resync is not None
    assert resync.windows == {ONE: (at(105), at(150)), THREE: (at(155), at(205))}


def test_a_renamed_table_waits_with_its_own_statements() -> None:
    """As in optimistic mode, where each table has its own."""
    state = group(ONE, TWO).hold(ONE, item(100, ADD_A)).hold(ONE, item(110, ADD_A)).hold(TWO, item(120, ADD_B))
    state = state.rename({TWO: THREE}, at(150), at(155))
    assert [one.ddls for one in state.tables[THREE].sequence.items] == [(ADD_B,)]
    assert state.tables[THREE].held_from == at(155)


def test_a_table_renamed_while_it_is_read_again_waits_for_its_old_name() -> None:
    state = group(ONE, TWO).meet(ONE, item(100, ADD_A)).meet(TWO, item(200, ADD_A)).resolve(at(205))
    state = state.rename({ONE: THREE}, at(210), at(215))
    resync = state.resync(at(300))
    assert resync is not None
    assert resync.windows == {ONE: (at(105), at(210)), THREE: (at(215), at(300))}
    assert set(state.resynced(at(300), at(300)).tables) == {TWO, THREE}


def test_the_log_of_a_stretch_is_kept_until_all_of_it_is_read_again() -> None:
    """A prepared transaction may begin in a part of it that is done, and end in the rest."""
    state = (
        group(ONE).meet(ONE, item(100, ADD_A)).meet(ONE, item(300, ADD_B)).resolve(at(400)).resynced(at(200), at(400))
    )
    assert (state.held[ONE], state.first) == (at(200), at(105))
    assert TableState.from_dict(state.tables[ONE].to_dict()) == state.tables[ONE]
    assert at(105) in state.places
    assert state.resynced(at(300), at(400)).first == at(300)


def test_a_table_nobody_knew_is_a_member_when_it_meets_a_ddl() -> None:
    assert group(ONE).meet(TWO, item(100, ADD_A)).unsynced == (ONE,)


def test_the_keeper_answers_for_all_groups() -> None:
    other = ShardingGroup("src", TableName("db", "u"), {THREE: TableState()})
    keeper = ShardingGroupKeeper("src").with_group(group(ONE, TWO).meet(ONE, item(100, ADD_A)))
    keeper = keeper.with_group(other.meet(THREE, item(50, ADD_B)))
    assert keeper.first == at(50)
    assert [one.target.table for one in keeper.unresolved] == ["u", "t"]
    assert keeper.held == {ONE: at(105), THREE: at(55)}
    assert keeper.next_resync(at(200)) is None
    resolved = keeper.with_group(keeper.group(other.target).resolve(at(200)))
    found = resolved.next_resync(at(200))
    assert found is not None
    assert found[0] == other.target
    assert keeper.group(TableName("db", "none")).tables == {}


def test_a_tables_state_survives_json() -> None:
    state = group(ONE, TWO).meet(ONE, item(100, ADD_A)).meet(TWO, item(200, ADD_A)).resolve(at(300)).drop(ONE, at(300))
    for one in state.tables.values():
        assert TableState.from_dict(one.to_dict()) == one


def test_a_statement_that_is_left_out_is_kept_for_what_is_read_again_before_it() -> None:
    out, late = item(120), item(160)
    assert group(ONE).pass_by(ONE, out) == group(ONE), "nothing is held"
    held = group(ONE, TWO).meet(ONE, item(100, ADD_A)).pass_by(ONE, out).meet(ONE, item(150, ADD_B)).pass_by(ONE, late)
    found = [held.tables[ONE].next_behind(Position("bin.000001", place)) for place in (110, 120, 121, 155, 170)]
    assert found == [out, out, item(150, ADD_B), late, None]
    assert TableState.from_dict(held.tables[ONE].to_dict()) == held.tables[ONE]
    half = held.meet(TWO, item(200, ADD_A)).resolve(at(205)).resynced(at(150), at(205))
    assert half.tables[ONE].passed == (late,)
    free = half.meet(TWO, item(250, ADD_B)).resolve(at(255)).resynced(at(255), at(255))
    assert not free.unresolved
    assert free.tables[ONE].passed == ()


def test_a_group_goes_over_to_another_log_with_all_its_places() -> None:
    held = group(ONE, TWO).meet(ONE, item(100, ADD_A)).meet(TWO, item(200, ADD_A)).resolve(at(300))
    held = held.drop(ONE, at(250)).meet(TWO, item(260, ADD_B)).pass_by(TWO, item(270))
    moved = held.moved(lambda place: at(place.position.offset + 1000))
    assert [place.position.offset + 1000 for place in held.places] == [place.position.offset for place in moved.places]
    assert len(held.places) == 12
    assert moved.moved(lambda place: at(place.position.offset - 1000)) == held


def test_ddl_that_is_in_a_copy_holds_its_table_from_the_snapshot_on() -> None:
    """Two are met while the main stream stands before the table's own snapshot at 300, one behind it."""
    copied = [DdlItem(at(begin), at(300), (text,)) for begin, text in ((100, ADD_A), (150, ADD_B))]
    both = group(ONE, TWO).meet(ONE, copied[0]).meet(ONE, copied[1])
    assert both.held == {ONE: at(300)}
    both = both.meet(TWO, item(200, ADD_A)).resolve(at(205))
    assert both.resync(at(205)) is None
    both = both.meet(TWO, item(400, ADD_B))
    assert both.held == {ONE: at(300), TWO: at(405)}
    resync = both.resolve(at(405)).resync(at(405))
    assert resync is not None
    assert resync.windows == {ONE: (at(300), at(405))}


def test_a_resync_is_read_from_edge_to_edge() -> None:
    """A snapshot lies at no statement of the log: no stretch of rows may be across it."""
    windows = {ONE: (at(100), at(400)), TWO: (at(250), at(300))}
    edges, begin = [], at(100)
    while begin != at(400):
        begin = Resync(begin, at(400), windows, begin).edge
        edges.append(begin)
    assert edges == [at(250), at(300), at(400)]


def test_tables_that_go_are_known_as_long_as_the_log_of_their_time_is_needed() -> None:
    def met(begin: int, before: int) -> DdlItem:
        return DdlItem(at(begin), at(begin + 5), (ADD_A,), {"before": {"columns": before}})

    def told(name: TableName, place: int) -> tuple[bool, object]:
        return state.structure_before(name, at(place).position)

    state = group(ONE, TWO).drop(TWO, at(90))
    assert state.gone == (), "nothing is held"
    state = group(ONE, TWO, THREE).meet(ONE, met(100, 1)).drop(THREE, at(120), {"columns": 3})
    state = state.rename({ONE: TWO, TWO: FOUR}, at(150), at(155), {ONE: {"columns": 2}, TWO: {"columns": 1}})
    assert [state.known_as(ONE, at(place).position) for place in (110, 150)] == [TWO, ONE]
    assert [state.known_as(TWO, at(place).position) for place in (149, 155)] == [FOUR, TWO]
    assert state.renamed_between(at(110).position, at(160).position)
    assert not state.renamed_between(at(155).position, at(160).position)
    assert [told(THREE, 115), told(THREE, 121)] == [(True, {"columns": 3}), (False, None)]
    assert [told(ONE, 100), told(ONE, 150)] == [(True, {"columns": 1}), (True, {"columns": 2})]
    assert [told(TWO, 150), told(TWO, 160)] == [(True, {"columns": 1}), (False, None)]
    state = state.meet(FOUR, met(200, 1)).resolve(at(205))
    assert len(state.gone) == 3
    assert state.resynced(at(205), at(205)).gone == ()
