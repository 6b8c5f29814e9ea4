"""Runs the remaining steps of an intent, each once.

With TiDB the history of its DDL jobs shows which statements ran; the structure does not.

A statement is also done where the server returned OK in this very attempt and everything that the statement makes is
there, whatever somebody else has added to the table meanwhile. Any other structure stops the task: nobody can tell who
made it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import MySQLdb

from unshard.ddl.evaluate import same_on_tidb
from unshard.ddl.intent import Decision, Intent, Step, Structures, decide
from unshard.ddl.sandbox import connection_cursor, server_text, show_create_database
from unshard.ddl.schema_equality import adds_only, alike, same
from unshard.ddl.session import event_session, neutral_session
from unshard.ddl.statement import StatementKind
from unshard.errors import DdlError
from unshard.log import logger
from unshard.model.table import TableName
from unshard.mysql.failures import is_transient
from unshard.mysql.structure import find_create_statement
from unshard.schema.lex import tokens

NOT_IN_TIDB = frozenset({1064, 1101, 1115, 1215, 1235, 1273, 3106, 3733, 3770, 3780, 3855, 8200})
"""Error numbers with which TiDB refuses a statement, or a part of one, that it does not support."""


_DROPS = (StatementKind.DROP_TABLE, StatementKind.DROP_DATABASE)


class Jobs(Protocol):
    """The DDL jobs of a TiDB target (`target.ddl_jobs`), which outlive the session that began them."""

    def run(self, word: str, statement: str) -> None:
        """Run a statement that can later be found by the word."""

    def was_done(self, word: str) -> bool:
        """Return whether an earlier attempt's statement has taken effect; waits while its job is running."""


def carry_out(
    connection: Any,
    intent: Intent,
    reach: Callable[[str], None],
    note_done: Callable[[int], None],
    *,
    resumed: bool,
    jobs: Jobs | None = None,
    begin: Callable[[Step], None] = lambda step: None,
) -> None:
    """Run every step that is not done, in order, on a connection without an open transaction.

    Args: connection: to the target. intent: the statement that is carried out.
        reach: crash points `ddl-execute-before`, `ddl-execute-after`, `ddl-noted`.
        note_done: stores durably how many steps are done; called after each step.
        resumed: whether an earlier attempt (of this or another process) had this intent. False only at the first.
        jobs: the DDL jobs of a TiDB target, whose history shows what an earlier attempt has done; None for others.
        begin: called before each step.

    Raises DdlError DDL-006 for a structure that is neither the one before the statement nor the one after it, DDL-007
    where only a human can decide, DDL-008 where the server refuses; MySQLdb.Error for a lost connection or a busy
    server, after which it may be called again with `resumed=True`. Idempotent by that.
    """
    for number in range(intent.done, len(intent.steps)):
        step = intent.steps[number]
        begin(step)
        if jobs is not None:
            _run_as_job(connection, intent, step, jobs, reach, resumed=resumed and number == intent.done)
            note_done(number + 1)
            reach("ddl-noted")
            continue
        actual = structures(connection, step)
        match decide(step, actual, resumed=resumed and number == intent.done):
            case Decision.RUN:
                reach("ddl-execute-before")
                _execute(connection, intent, step)
                reach("ddl-execute-after")
            case Decision.CONFLICT:
                raise _conflict(intent, step, actual)
            case Decision.UNCLEAR:
                raise DdlError("DDL-007", intent.context.where, values={"statement": step.statement})
            case Decision.DONE:
                pass
        note_done(number + 1)
        reach("ddl-noted")


def _run_as_job(
    connection: Any, intent: Intent, step: Step, jobs: Jobs, reach: Callable[[str], None], *, resumed: bool
) -> None:
    if resumed:
        if jobs.was_done(step.word):
            return
        actual = structures(connection, step)
        if decide(step, actual, resumed=False) is Decision.CONFLICT:
            raise _conflict(intent, step, actual)
    if step.kind is StatementKind.CREATE_TABLE and _is_there(connection, step):
        return
    if step.kind in _DROPS and not any(structures(connection, step).values()):
        return  # a DROP of several tables is logged even if the source lacks one of them; a copy may not have a schema
    reach("ddl-execute-before")
    try:
        with event_session(connection, step.context, step.kind, step.statement):
            jobs.run(step.word, step.statement)
    except MySQLdb.Error as error:
        if is_transient(error):
            raise
        where = replace(intent.context.where, table=", ".join(step.before))
        code = "DDL-038" if error.args[0] in NOT_IN_TIDB else "DDL-008"
        raise DdlError(code, where, server_text(error), {"statement": step.statement}) from error
    reach("ddl-execute-after")


def _is_there(connection: Any, step: Step) -> bool:
    """Return whether TiDB already has the table that a step makes, as it has for a further shard of a merged table."""
    for name, text in structures(connection, step).items():
        wanted = step.after[name]
        if text is None or wanted is None or step.before[name] is not None:
            return False
        if not same_on_tidb(text, wanted, unquoted(name)):
            return False
    return True


def structures(connection: Any, step: Step) -> Structures:
    """Return the target's present SHOW CREATE of every table or schema that the step names."""
    with neutral_session(connection):
        return {name: _structure(connection, step, name) for name in step.before}


def _structure(connection: Any, step: Step, name: str) -> str | None:
    if step.kind.on_schema:
        return show_create_database(connection, tokens(name)[0].value)
    return find_create_statement(connection, unquoted(name))


def unquoted(name: str) -> TableName:
    """Return the table of a key of `Structures`."""
    schema, _, table = tokens(name)
    return TableName(schema.value, table.value)


def _execute(connection: Any, intent: Intent, step: Step) -> None:
    """Run a step and compare the target's structures with the expected ones.

    A statement that the server refuses although its effect is there was the success of an earlier attempt.
    """
    context = intent.context
    try:
        with (
            event_session(connection, step.context, step.kind, step.statement),
            connection_cursor(connection) as cursor,
        ):
            cursor.execute(step.statement)
    except MySQLdb.Error as error:
        if is_transient(error):
            raise
        if decide(step, structures(connection, step), resumed=True) is not Decision.DONE:
            where = replace(context.where, table=", ".join(step.before))
            raise DdlError("DDL-008", where, server_text(error), {"statement": step.statement}) from error
    actual = structures(connection, step)
    others = [name for name, text in step.after.items() if not alike(actual[name], text)]
    if any(step.before[name] is None or not adds_only(actual[name], step.after[name]) for name in others):
        raise _conflict(intent, step, actual)
    for name in others:
        words = {"table": name, "statement": step.statement, "more": _differences(step.after[name], actual[name])}
        log = logger("sync", source=context.where.source or "")
        log.warning("a table was altered by hand while a statement ran on it; the statement is done", **words)


def _conflict(intent: Intent, step: Step, actual: Structures) -> DdlError:
    names = [
        name
        for name, text in actual.items()
        if not same(text, step.after[name]) and (not same(text, step.before[name]) or len(actual) == 1)
    ] or list(actual)
    cause = "\n".join(_side_by_side(name, step.before[name], step.after[name], actual[name]) for name in names)
    table = ", ".join(names)
    return DdlError(
        "DDL-006", replace(intent.context.where, table=table), cause, {"table": table, "statement": step.statement}
    )


def _side_by_side(name: str, before: str | None, after: str | None, found: str | None) -> str:
    """Return three texts, and the lines in which the found text differs from the expected one."""
    texts = {"before": before, "expected after": after, "found": found}
    blocks = [f"--- {name}, {title}:\n{text or '(is not there)'}" for title, text in texts.items()]
    return "\n".join([*blocks, "--- expected (-) and found (+) differ in:", *_differences(after, found)])


def _differences(after: str | None, found: str | None) -> list[str]:
    lines = difflib.ndiff((after or "").splitlines(), (found or "").splitlines())
    return [line for line in lines if line[:1] in "+-"]
