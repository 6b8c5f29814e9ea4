"""Rewriting of a dump's SQL text for the target, without a server: bytes in, bytes out.

Files of any tool are cut into statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from unshard.errors import ConfigError, LoadError, Where
from unshard.kernels.literals import render
from unshard.load.file_text import Bytes
from unshard.model.table import TableName, quote_name
from unshard.transform.column_mapping import ColumnMapping, apply_mapping
from unshard.transform.extract import Constant

_QUOTED = rb"'(?:[^'\\]++|\\.|'')*+'|\"(?:[^\"\\]++|\\.|\"\")*+\""
_NAME = rb"(?:`(?:[^`]|``)+`|[^\s`(.]+)"
COMMENT = rb"/\*(?!!)(?:[^*]++|\*(?!/))*\*/|--(?=\s)[^\n]*+|#[^\n]*+"
# The re module of Python 3.11.0 to 3.11.4 (Debian 12 has 3.11.2) does not go back to where the last round of a
# possessive group began, if that round read something before it failed (CPython's issue 106052). So a group whose
# rounds may do that is not possessive; its alternatives exclude each other, so that going back finds nothing else.
_STATEMENT = re.compile(
    rb"(?:[^;'\"`/#\-]++|" + _QUOTED + rb"|`[^`]*+`|" + COMMENT + rb"|/(?!\*[^!])|-(?!-\s))*;", re.DOTALL
)
_BLANK = re.compile(rb"(?:\s++|" + COMMENT + rb")*", re.DOTALL)
_INSERT = re.compile(
    rb"(?:INSERT|REPLACE)\s+(?:IGNORE\s+)?INTO\s+"
    rb"(?:" + _NAME + rb"\s*\.\s*)?" + _NAME + rb"\s*(\((?:`(?:[^`]|``)+`|[^`)])*\))?\s*VALUES?\s*",
    re.IGNORECASE,
)
_LISTED = re.compile(rb"`((?:[^`]|``)+)`|([^\s`,()]+)")
_TOKEN = re.compile(_QUOTED + rb"|[(),]|[^'\"(),]+", re.DOTALL)
_FLAT = rb"(?:[^'\"()]++|" + _QUOTED + rb")*"
_NESTED = rb"(?:[^'\"()]++|" + _QUOTED + rb"|\((?:[^'\"()]++|" + _QUOTED + rb"|\(" + _FLAT + rb"\))*\))*"
_ROW = re.compile(rb"\((" + _NESTED + rb")\)", re.DOTALL)
_ROWS = re.compile(rb"(?:[\s,]*+\(" + _NESTED + rb"\))*\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Text:
    """One statement of an SQL file: its bytes with the semicolon, and the offset after it."""

    sql: bytes
    end: int


def statements(data: Bytes, start: int, where: Where) -> Iterator[Text]:
    """Yield the statements from `start` (a statement's boundary) on; comments between them are dropped.

    Raises LoadError LOAD-002 where the text ends inside a statement.
    """
    position = start
    while True:
        blank = _BLANK.match(data, position)
        position = blank.end() if blank else position
        if position >= len(data):
            return
        found = _STATEMENT.match(data, position)
        if found is None:
            raise LoadError("LOAD-002", where, values={"fault": f"the statement at byte {position} has no end"})
        yield Text(data[position : found.end()], found.end())
        position = found.end()


@dataclass(frozen=True, slots=True)
class Rewriter:
    """The conversion of a dump's INSERT statements for one target table.

    Args:
        columns: the table's own, for INSERTs that name none.
        verb: `INSERT`, `REPLACE` or `INSERT IGNORE`.
        constants: values that each row gets after its own (extracted columns).
    """

    target: TableName
    columns: tuple[str, ...]
    verb: str
    mapping: ColumnMapping | None
    where: Where
    constants: tuple[Constant, ...] = ()

    def rewrite(self, sql: bytes) -> bytes:
        """Return the statement for the target. Raises LoadError LOAD-003 for anything but INSERT and REPLACE."""
        head = _INSERT.match(sql)
        if head is None:
            raise LoadError("LOAD-003", self.where, values={"statement": sql[:100].decode(errors="replace")})
        columns = self._columns(head[1])
        values = sql[head.end() :].rstrip().rstrip(b";")
        if self.mapping is not None:
            of_text = self.mapping.of_text
            values = (self._joined if of_text else self._mapped)(values, columns, self.mapping)
        if self.constants:
            values = self._lengthened(values)
            columns = (*columns, *(one.column.name for one in self.constants))
        return self.head(columns) + values

    def head(self, columns: Sequence[str]) -> bytes:
        """Return the statement up to its values."""
        names = ",".join(quote_name(name) for name in columns)
        return f"{self.verb} INTO {self.target.quoted} ({names}) VALUES ".encode()

    def _columns(self, listed: bytes | None) -> tuple[str, ...]:
        if listed is None:
            return self.columns
        found = _LISTED.findall(listed)
        return tuple((quoted.replace(b"``", b"`") or bare).decode() for quoted, bare in found)

    def _lengthened(self, values: bytes) -> bytes:
        """Append the constants to each row's own values."""
        if _ROWS.fullmatch(values) is None:
            statement = values[:100].decode(errors="replace")
            raise LoadError("LOAD-003", self.where, values={"statement": statement})
        added = b",".join(_literal(one) for one in self.constants)
        return _ROW.sub(rb"(\1," + added.replace(b"\\", b"\\\\") + b")", values)

    def _joined(self, values: bytes, columns: tuple[str, ...], mapping: ColumnMapping) -> bytes:
        """Have the server join the text: the dump's literal may have any form, and NULL stays NULL. Slow: by rows."""
        source, target = _places(columns, mapping)
        before, after = (_quoted(text) for text in (mapping.prefix, mapping.suffix))
        out, last = [], 0
        for row in rows_of(values, len(columns), self.where):
            begin, end = row[target]
            out += [values[last:begin], b"CONCAT(" + before + b",", values[slice(*row[source])], b"," + after + b")"]
            last = end
        return b"".join([*out, values[last:]])

    def _mapped(self, values: bytes, columns: tuple[str, ...], mapping: ColumnMapping) -> bytes:
        source, target = _places(columns, mapping)
        fields = list(rows_of(values, len(columns), self.where))
        ids = pa.array([_integer(values[slice(*row[source])], self.where) for row in fields], pa.int64())
        batch = pa.RecordBatch.from_arrays([ids], [mapping.source_column])
        if source != target:
            batch = pa.RecordBatch.from_arrays([ids, ids], [mapping.source_column, mapping.target_column])
        try:
            mapped = apply_mapping(batch, mapping).column(mapping.target_column).to_pylist()
        except ConfigError as error:
            raise error.at(source=self.where.source, file=self.where.file) from None
        out, last = [], 0
        for row, value in zip(fields, mapped, strict=True):
            begin, end = row[target]
            out += [values[last:begin], b"NULL" if value is None else str(value).encode()]
            last = end
        return b"".join([*out, values[last:]])


def row_spans(statement: bytes, where: Where) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the statement up to its first row, and for each row the (start, end) of its text with the brackets.

    Raises LoadError LOAD-003 for a statement that has no list of rows.
    """
    head = _INSERT.match(statement)
    if head is None or _ROWS.fullmatch(statement, head.end()) is None:
        raise LoadError("LOAD-003", where, values={"statement": statement[:100].decode(errors="replace")})
    return head[0], [found.span() for found in _ROW.finditer(statement, head.end())]


def literals_of(statement: bytes, column: str, where: Where) -> Iterator[bytes]:
    """Yield each row's literal for a column of a statement that `Rewriter.rewrite` made; none if it has no such column.

    Raises LoadError LOAD-003 as `rows_of`.
    """
    head = _INSERT.match(statement)
    assert head is not None, "it is an INSERT"
    names = [(quoted.replace(b"``", b"`") or bare).decode().lower() for quoted, bare in _LISTED.findall(head[1])]
    if column.lower() in names:
        place, values = names.index(column.lower()), statement[head.end() :]
        for row in rows_of(values, len(names), where):
            yield values[slice(*row[place])]


def rows_of(values: bytes, width: int, where: Where) -> Iterator[list[tuple[int, int]]]:
    """Yield the (start, end) of each row's literals in a VALUES list. Raises LoadError LOAD-003 for a wrong count."""
    depth, begin = 0, 0
    fields: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(values):
        sign = token[0]
        if sign == b"(":
            depth += 1
            if depth == 1:
                begin, fields = token.end(), []
        elif sign == b"," and depth == 1:
            fields.append((begin, token.start()))
            begin = token.end()
        elif sign == b")":
            depth -= 1
            if depth == 0:
                fields.append((begin, token.start()))
                if len(fields) != width:
                    statement = values[fields[0][0] : fields[0][0] + 100].decode(errors="replace")
                    raise LoadError("LOAD-003", where, values={"statement": statement})
                yield fields


def _places(columns: tuple[str, ...], mapping: ColumnMapping) -> tuple[int, int]:
    lowered = [name.lower() for name in columns]
    return lowered.index(mapping.source_column.lower()), lowered.index(mapping.target_column.lower())


def _literal(one: Constant) -> bytes:
    return _quoted(one.value) if isinstance(one.value, str) else bytes(render([one.values(1)], [b""], b"")[0].as_py())


def _quoted(text: str) -> bytes:
    """Return a text's literal as UTF-8, whatever character set the dump's own texts are in."""
    return b"_utf8mb4" + bytes(render([pa.array([text])], [b""], b"")[0].as_py())


def _integer(literal: bytes, where: Where) -> int | None:
    text = literal.strip().strip(b"'\"")
    if text.upper() == b"NULL":
        return None
    try:
        return int(text)
    except ValueError as error:
        statement = literal[:100].decode(errors="replace")
        raise LoadError("LOAD-003", where, cause=str(error), values={"statement": statement}) from error
