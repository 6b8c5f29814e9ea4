"""Errors of the dump."""

from __future__ import annotations

from unshard.error_catalogue.entry import ANEW, CatalogueEntry

DUMP: dict[str, CatalogueEntry] = {
    "DUMP-001": CatalogueEntry(
        "the set of tables changed while it was dumped",
        "run no CREATE, DROP or RENAME TABLE on the source, and no ALTER TABLE of an engine or a key, until the dump is"
        " done; the task starts it over. A dump without a lock (MariaDB, all tables InnoDB) tolerates all but another"
        " engine",
        retryable=True,
    ),
    "DUMP-002": CatalogueEntry(
        "the dump folder is not empty: it holds {found}",
        "name another folder (`dir` under `loaders:`), or remove the contents of this one",
    ),
    "DUMP-004": CatalogueEntry(
        "the source did not grant the lock for a consistent dump: {statement}",
        "grant RELOAD and LOCK TABLES to the account, end the long statement that blocks the lock, or use"
        " `--consistency none`",
        retryable=True,
    ),
    "DUMP-005": CatalogueEntry(
        "column {column} holds a value that its type does not allow",
        "correct the row on the source: the cause names the value",
    ),
    "DUMP-006": CatalogueEntry(
        "a file of a finished table is missing or has another size",
        "remove the dump folder; the task dumps again",
    ),
    "DUMP-007": CatalogueEntry(
        "there is no finished dump in this folder", "let the dump finish, or name the right folder"
    ),
    "DUMP-009": CatalogueEntry("writing a dump file failed", "make room on the disk or correct the folder's rights"),
    "DUMP-010": CatalogueEntry(
        "the table's structure kept changing while its snapshot was opened",
        "run no ALTER TABLE on the source until the dump is done",
        retryable=True,
    ),
    "DUMP-011": CatalogueEntry(
        "an XA COMMIT was in progress at every moment of {seconds} seconds; a snapshot without a lock needs one "
        "without",
        "use `--consistency flush` (`extra-args` under `mydumpers:`) for the dump, which blocks writers for a moment;"
        " or pause the XA transactions until the dump is done",
    ),
    "DUMP-012": CatalogueEntry(
        "the connection to the source was lost {attempts} times in a row; the dump was started again each time",
        "check the network and the source's error log, then start again; a dump of MariaDB without a lock goes on"
        " with the tables that are left, one with `--consistency` flush, lock or none can't",
        retryable=True,
    ),
    "DUMP-013": CatalogueEntry(
        "the source told another binlog position of the same snapshot each time, {reads} times",
        "have `from` name the source itself, not a proxy in front of it; or use `--consistency flush` (`extra-args`"
        " under `mydumpers:`) for the dump, which blocks writers for a moment",
    ),
    "DUMP-014": CatalogueEntry(
        "the finished dump lacks tables that the task's rules select now: {tables}",
        "change `block-allow-list` (or `-B`, `-T`, `--filter` under `mydumpers:`) so that it does not select these"
        f" tables, as when the dump was made, and start again; or {ANEW}, which copies them too",
    ),
    "DUMP-015": CatalogueEntry(
        "for {seconds} seconds a commit was under way that is in the source's binlog and not in its tables; a snapshot"
        " without a lock needs a moment without",
        "on the source, `SHOW STATUS LIKE 'Rpl_semi_sync_master_wait_sessions'` counts the commits that wait for a"
        " replica: start the replica, or reduce `rpl_semi_sync_master_timeout`; the task tries again",
        retryable=True,
    ),
}
