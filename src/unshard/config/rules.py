"""The named rules of a task: routes, block-allow lists, column mappings, filters."""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from unshard.config.event_names import EventWord, list_fault, matches_any
from unshard.config.patterns import Extraction, FreePattern, NamePattern, SqlPattern
from unshard.config.section import NoEffect, Section

INSTANCE_LIMIT = 15
"""The largest instance number of a `partition id` mapping, which has four bits for it."""


def _online_table_rule(text: str) -> str:
    """Return a rule as DM reads it: anchored at both ends.

    Raises ValueError unless it has exactly one capture group.
    """
    rule = ("" if text.startswith("^") else "^") + text + ("" if text.endswith("$") else "$")
    try:
        groups = re.compile(rule).groups
    except re.error as error:
        raise ValueError(f"it is no regular expression: {error}") from None
    if groups != 1:
        raise ValueError(f"it has {groups} capture groups; write one, around the table's name: ^_(.+)_new$")
    return rule


OnlineTableRule = Annotated[str, AfterValidator(_online_table_rule)]
"""A regular expression for names of helper tables. Its capture group is the name of the table that they belong to."""


class ExtractTable(Section):
    """A part of the source table's name, as a column of the target."""

    of: ClassVar[str] = "table"
    table_regexp: Extraction = Field(
        description="Regular expression, not anchored; its capture groups are joined to the value."
    )
    target_column: str = Field(min_length=1, max_length=64, description="Column of the target that takes the value.")

    @property
    def regexp(self) -> str:
        """Pattern whose groups give the value of the column."""
        return self.table_regexp


class ExtractSchema(Section):
    """A part of the source schema's name, as a column of the target."""

    of: ClassVar[str] = "schema"
    schema_regexp: Extraction = Field(
        description="Regular expression, not anchored; its capture groups are joined to the value."
    )
    target_column: str = Field(min_length=1, max_length=64, description="Column of the target that takes the value.")

    @property
    def regexp(self) -> str:
        """As `ExtractTable.regexp`."""
        return self.schema_regexp


class ExtractSource(Section):
    """A part of the source id, as a column of the target."""

    of: ClassVar[str] = "source"
    source_regexp: Extraction = Field(
        description="Regular expression, not anchored; its capture groups are joined to the value."
    )
    target_column: str = Field(min_length=1, max_length=64, description="Column of the target that takes the value.")

    @property
    def regexp(self) -> str:
        """As `ExtractTable.regexp`."""
        return self.source_regexp


class RouteRule(Section):
    """The target of a set of tables.

    Rules with a table pattern have precedence; two rules of one level for one table are an error.
    """

    schema_pattern: NamePattern = Field(description="Source schemas that the rule is for.", examples=["shop_*"])
    table_pattern: NamePattern | None = Field(
        default=None,
        description="Source tables that the rule is for; not set: a schema rule, for all tables that no other rule "
        "takes and for statements on the schema itself.",
        examples=["order_*"],
    )
    target_schema: str = Field(min_length=1, max_length=64, description="Schema on the target.", examples=["shop"])
    target_table: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="Table on the target; not set: the source's name is kept.",
    )
    extract_table: ExtractTable | None = Field(
        default=None, description="A column filled from the source table's name."
    )
    extract_schema: ExtractSchema | None = Field(
        default=None, description="A column filled from the source schema's name."
    )
    extract_source: ExtractSource | None = Field(default=None, description="A column filled from the source id.")

    @model_validator(mode="after")
    def _level(self) -> RouteRule:
        if self.target_table and not self.table_pattern:
            raise ValueError("target-table needs table-pattern; add it, or take target-table out")
        return self

    @model_validator(mode="after")
    def _one_column_each(self) -> RouteRule:
        parts = (self.extract_table, self.extract_schema, self.extract_source)
        columns = Counter(part.target_column.lower() for part in parts if part is not None)
        if columns and max(columns.values()) > 1:
            raise ValueError("two parts are extracted to one column; name a target-column for each")
        return self


class TableEntry(Section):
    """One table of a block-allow list."""

    db_name: FreePattern = Field(description="Schemas; `*` may stand anywhere.")
    tbl_name: FreePattern = Field(description="Tables; `*` may stand anywhere.")


class BlockAllowRule(Section):
    """The tables to migrate. The schema is checked first, then the table. System schemas are never migrated."""

    do_dbs: tuple[FreePattern, ...] = Field(default=(), description="Schemas to take; when set, no other is.")
    do_tables: tuple[TableEntry, ...] = Field(default=(), description="Tables to take; when set, no other is.")
    ignore_dbs: tuple[FreePattern, ...] = Field(
        default=(), description="Schemas to leave; not looked at beside `do-dbs`."
    )
    ignore_tables: tuple[TableEntry, ...] = Field(
        default=(), description="Tables to leave, unless `do-tables` has them."
    )


class ColumnMappingRule(Section):
    """A change of a column's values that keeps the values of merged tables from clashing."""

    schema_pattern: NamePattern = Field(description="Source schemas that the rule is for.")
    table_pattern: NamePattern | None = Field(
        default=None, description="Source tables that the rule is for; not set: all."
    )
    source_column: str = Field(min_length=1, description="Column that is read.")
    target_column: str = Field(min_length=1, description="Column that is written; it has to be there already.")
    expression: Literal["partition id", "add prefix", "add suffix"] = Field(
        description="`partition id`: the sign bit, 4 bits of the instance, 7 of the schema, 8 of the table, 44 of "
        "the id, in a BIGINT. An empty argument's bits are not taken, and the parts behind it move up. "
        "`add prefix`, `add suffix`: a text before or behind that of a CHAR, VARCHAR or TEXT column."
    )
    arguments: tuple[str, ...] = Field(
        description="Of `partition id`: instance number (0 to 15), schema prefix, table prefix, and optionally a "
        "separator: names are prefix, separator, number (schema 0 to 127, table 0 to 255), or the prefix alone for 0. "
        "An empty text leaves the part out. Of the others: the text.",
        examples=[["1", "shop_", "order_"]],
    )
    create_table_query: Annotated[str, NoEffect("DM never ran it; create the target table by hand")] = Field(
        default="", description="Statement that makes the target table."
    )

    @field_validator("arguments")
    @classmethod
    def _arguments(cls, arguments: tuple[str, ...], rest: ValidationInfo) -> tuple[str, ...]:
        if rest.data.get("expression") in ("add prefix", "add suffix"):
            if len(arguments) != 1 or not arguments[0]:
                raise ValueError('write one text, which is added: ["north-"]')
            return arguments
        if len(arguments) not in (3, 4):
            raise ValueError('write three or four texts: ["1", "schema_", "table_"]')
        instance = arguments[0]
        if instance and not (instance.isascii() and instance.isdigit() and int(instance) <= INSTANCE_LIMIT):
            raise ValueError(f"the first argument is the instance: a number from 0 to {INSTANCE_LIMIT}, or empty")
        if not any(arguments[:3]):
            raise ValueError("all parts are empty, so the rule would change nothing; take it out")
        return arguments


class FilterRule(Section):
    """Binlog events to leave out, or to stop at. The first rule that applies to an event decides."""

    schema_pattern: NamePattern = Field(description="Source schemas that the rule is for.", examples=["shop_*"])
    table_pattern: NamePattern | None = Field(
        default=None,
        description="Source tables that the rule is for; not set: all, and it comes before the rules that name some. "
        "Statements on a schema itself need a rule without it, or `*`.",
        examples=["order_*"],
    )
    events: tuple[EventWord, ...] = Field(
        default=(),
        description="Kinds of events, read in order; the first that says something of an event counts: `all`, "
        "`none`, `all dml`, `none dml`, `all ddl`, `none ddl`, `incompatible ddl changes`, or a name such as "
        "`delete` or `truncate table`.",
        examples=[["truncate table", "drop table"]],
    )
    sql_pattern: tuple[SqlPattern, ...] = Field(
        default=(),
        description="Regular expressions, without regard to case, over the statement as the source logged it; one "
        "that is found in it is a match. `Ignore` and `Error` need a match of `events` or of this, `Do` needs both.",
        examples=[["^DROP\\s+TABLE"]],
    )
    action: Literal["Do", "Ignore", "Error"] = Field(
        description="`Ignore`: what matches is left out. `Do`: what doesn't match is. `Error`: the task stops at it."
    )

    @model_validator(mode="after")
    def _effective(self) -> FilterRule:
        fault = list_fault(self.events)
        if fault is not None:
            raise ValueError(f"events: {fault}")
        if matches_any(self.events) or (self.sql_pattern and self.action != "Do"):
            return self
        if self.action == "Do":
            raise ValueError(
                "events matches nothing, so with `Do` everything is left out; write events: [all] and action: Ignore "
                "if that is meant, or add events"
            )
        raise ValueError("it can never match; name events, or give a sql-pattern")


class ExpressionFilterRule(Section):
    """Row changes to leave out, by an expression over their values; only in the incremental part.

    A rule has one kind of expression. Write several rules for several kinds, or for OR.
    """

    schema_: str = Field(alias="schema", min_length=1, description="Source schema, exactly.")
    table: str = Field(min_length=1, description="Source table, exactly.")
    insert_value_expr: str = Field(
        default="", description="Inserted rows for which this is true are left out.", examples=["status = 'draft'"]
    )
    update_old_value_expr: str = Field(
        default="",
        description="Updated rows are left out whose old values make this true, and whose new ones "
        "`update-new-value-expr`; one that isn't set counts as true.",
    )
    update_new_value_expr: str = Field(default="", description="The same for the new values.")
    delete_value_expr: str = Field(default="", description="Deleted rows for which this is true are left out.")

    @model_validator(mode="after")
    def _one_kind(self) -> ExpressionFilterRule:
        updates = self.update_old_value_expr or self.update_new_value_expr
        if sum(map(bool, (self.insert_value_expr, updates, self.delete_value_expr))) != 1:
            raise ValueError(
                "write one kind of expression: insert-value-expr, or delete-value-expr, or update-old-value-expr and "
                "update-new-value-expr; several rules for several kinds"
            )
        return self
