"""Errors of the bytes of a binlog."""

from __future__ import annotations

from unshard.error_catalogue.entry import ANEW, CatalogueEntry

BINLOG: dict[str, CatalogueEntry] = {
    "BINLOG-001": CatalogueEntry(
        "the checksum of a {event} event doesn't match its bytes",
        "the file is damaged: stop the task, remove this relay file and all later ones, start the task: they are "
        "fetched from the source again",
    ),
    "BINLOG-002": CatalogueEntry(
        "a {event} event is malformed",
        "the file is damaged: stop the task, remove this relay file and all later ones, start the task: they are "
        "fetched from the source again",
    ),
    "BINLOG-003": CatalogueEntry(
        "this is not a binlog file that can be read",
        "if it is a relay file, stop the task, remove it and all later ones, start the task; otherwise look at the "
        "source's version",
    ),
    "BINLOG-004": CatalogueEntry("{event} cannot be followed", "{remedy}"),
    "BINLOG-005": CatalogueEntry(
        "rows were changed by a statement, not as row images: {statement}",
        "set binlog_format=ROW on the source (globally, and in sessions that are open); apply this statement to the "
        "target by hand and start after it, or dump again",
    ),
    "BINLOG-006": CatalogueEntry(
        "a {event} event is where it is not allowed, {within}",
        "the events are out of order: stop the task, remove this relay file and all later ones, start the task: they "
        "are fetched from the source again; if it happens again, report it with the output of mariadb-binlog",
    ),
    "BINLOG-007": CatalogueEntry(
        "a transaction was rolled back in part, and its events don't tell which rows",
        "look at it with mariadb-binlog, apply what is left of it to the target by hand and start after it; don't "
        "change tables of transactional and other engines in one transaction",
    ),
    "BINLOG-020": CatalogueEntry(
        "column {column}: values of type {type} are not supported",
        "leave the table out by block-allow-list, or change the column's type at the source",
    ),
    "BINLOG-021": CatalogueEntry(
        "a value of column {column} can't be read",
        f"look at the row with mariadb-binlog; correct it at the source, or leave the table out, and {ANEW}",
    ),
    "BINLOG-022": CatalogueEntry(
        "the structure known for the table is not the one that the binlog was written with",
        "known: {known}; logged as type codes: {logged}. Give the structure of that time, "
        "`unshard ctl binlog-schema update {task_file} DB TABLE FILE -s {source_id}`, and start again; or "
        f"{ANEW}",
    ),
    "BINLOG-023": CatalogueEntry(
        "an event with row images is malformed",
        "the file is damaged: stop the task, remove this relay file and all later ones, start the task: they are "
        "fetched from the source again",
    ),
    "BINLOG-024": CatalogueEntry(
        "a {event} event stands among row events and can't be decoded",
        "look at it with mariadb-binlog; turn off at the source what writes it, and copy the tables again",
    ),
    "BINLOG-026": CatalogueEntry(
        "rows of a table that no TABLE_MAP event names",
        "start at the beginning of a transaction; if the position was not set by hand, report this as a bug",
    ),
    "BINLOG-027": CatalogueEntry(
        "column {column}: charset {charset} is unknown",
        "leave the table out by block-allow-list, or change the column's charset at the source",
    ),
    "BINLOG-028": CatalogueEntry(
        "the SQL text of a batch of rows is longer than 2 GiB",
        "make chunks smaller: lower `rows` and `chunk-filesize` of the dump",
    ),
    "BINLOG-045": CatalogueEntry(
        "column {column}: the members of {type} are not certain: the server shows an emoji in them as ?",
        "rename the members that hold an emoji or a question mark (ALTER TABLE at the source); if it is a plain"
        f" question mark, SET GLOBAL binlog_row_metadata=FULL at the source and {ANEW}",
    ),
    "BINLOG-046": CatalogueEntry(
        "row images of a system-versioned table lack columns: they don't tell a current row from history",
        f"set binlog_row_image=FULL at the source, for running sessions too, and {ANEW}",
    ),
    "BINLOG-043": CatalogueEntry(
        "column {column}: collation id {collation} is of no known character set",
        "read the table by its structure on the server instead, or change the column's collation at the source",
    ),
    "BINLOG-050": CatalogueEntry(
        "the file ends within an event",
        "it was cut off: copy it again from the server; of a relay file, stop the task, remove it and all later ones, "
        "start the task: they are fetched from the source again",
    ),
    "BINLOG-051": CatalogueEntry("the binlog file can't be read", "check the path and the rights of the file"),
    "BINLOG-055": CatalogueEntry(
        "there is no binlog to read",
        "give a binlog file, a folder with the files of one server, or a relay folder",
    ),
    "BINLOG-056": CatalogueEntry(
        "the log has columns that the schema has no place for: {columns}",
        "the table was altered: read on with the present structure, from a position after the ALTER",
    ),
    "BINLOG-057": CatalogueEntry(
        "the structure of the table isn't known",
        "set binlog_row_metadata=FULL on the source for what it writes from now on, or name a server to read the "
        "structure from: options host, port, user and password",
    ),
    "BINLOG-033": CatalogueEntry(
        "an XA statement is written in a form that isn't known: {statement}",
        "look at it with mariadb-binlog, apply what it does to the target by hand and start after it",
    ),
    "BINLOG-034": CatalogueEntry(
        "the XA transaction {xid} is committed here, but the part of the binlog in which its rows were prepared"
        " isn't here",
        f"it was prepared before the task's first binlog file. {ANEW[0].upper()}{ANEW[1:]} while `XA RECOVER` "
        "is empty on the source; or apply its rows to the target by hand and start after this position",
    ),
    "BINLOG-035": CatalogueEntry(
        "the rows of an XA transaction that is committed here can't be read again where they were prepared, {prepared}",
        "put the relay file back as it was; if it does not exist any more, stop the task, remove the relay folder"
        " and start the task: it is fetched from the source again, which must still have it",
    ),
    "BINLOG-037": CatalogueEntry(
        "a row event has images without any column, so the number of its rows is not known",
        "MySQL writes that for INSERT ... VALUES () with binlog_row_image=MINIMAL: insert the row in the target by "
        "hand and start after it, and set binlog_row_image=FULL on the source, or dump again",
    ),
    "BINLOG-030": CatalogueEntry(
        "a compressed event, {event}, can't be unpacked",
        "the file is damaged: stop the task, remove this relay file and all later ones, start the task: they are "
        "fetched from the source again",
    ),
    "BINLOG-031": CatalogueEntry(
        "a {event} event is compressed by algorithm number {algorithm}, which is not known",
        "set {setting}=OFF on the source, and start from a position after that",
    ),
    "BINLOG-032": CatalogueEntry(
        "a {event} event has {size} bytes that can only be unpacked at once, which is too much",
        "set binlog_transaction_compression=OFF on the source, or make its transactions smaller; this one's changes"
        f" can't be read, so {ANEW}",
    ),
    "BINLOG-038": CatalogueEntry(
        "column {column}: a change of a JSON document is logged without the document",
        "binlog_row_value_options=PARTIAL_JSON needs binlog_row_image=FULL to be followed: change one of them "
        f"on the source (globally, and in sessions that are open), then {ANEW}",
    ),
}
