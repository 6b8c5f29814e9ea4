"""What a comparison can't do, or not judge."""

from __future__ import annotations

from unshard.error_catalogue.entry import ANEW, CatalogueEntry

COMPARE: dict[str, CatalogueEntry] = {
    "COMPARE-001": CatalogueEntry(
        "the target has no table {target}, where rows of this table go",
        f"if the copy is not done, wait for it. If it is done, somebody has dropped the table from the target: {ANEW}",
    ),
    "COMPARE-002": CatalogueEntry(
        "column {column} of the source is not in the target's table {target}; the other columns were compared",
        "add the column to the target's table and fill it, or leave it out on purpose with --ignore-columns {column}",
    ),
    "COMPARE-003": CatalogueEntry(
        "the values of column {column} can't be compared: it is {here} in the source and {there} in the target; the"
        " other columns were compared",
        "give the column the same type on both sides, or leave it out on purpose with --ignore-columns {column}",
    ),
    "COMPARE-004": CatalogueEntry(
        "source {source} could not be read, and it may hold rows of this table",
        "see the error of the source itself, and compare again",
    ),
    "COMPARE-005": CatalogueEntry(
        "the table is on record in the target's checkpoint, and the account does not see it in the source",
        "grant SELECT on it to the source's account; if it was dropped in the source, the task has not come to that"
        " statement yet: compare again later",
    ),
    "COMPARE-006": CatalogueEntry(
        "the task has no checkpoint of this source, so it is not known how far its changes are in the target",
        "wait until the copy is done and the task follows the binlog; `unshard status` shows it",
    ),
    "COMPARE-007": CatalogueEntry(
        "there is no table to compare",
        "look at the block-allow list and at --table: `unshard explain` tells why a table is left out",
    ),
    "COMPARE-008": CatalogueEntry(
        "{file} holds the progress of another comparison: {fault}",
        "name another file with --state, or remove this one",
    ),
    "COMPARE-009": CatalogueEntry(
        "--where can't be applied to a table with a column mapping: its values differ on both sides",
        "compare this table without --where, and name it with --table",
    ),
    "COMPARE-010": CatalogueEntry(
        "{file} is no configuration of sync-diff-inspector that can be used: {fault}",
        "correct that key; keys and their places are those of sync-diff-inspector's own documentation",
    ),
    "COMPARE-011": CatalogueEntry(
        "column {column} holds a value that column mapping {rule} does not take: {value}",
        "the task itself refuses such a row; correct it in the source, or choose another mapping",
    ),
    "COMPARE-012": CatalogueEntry(
        "the differences can't be written to this file",
        "name a file in a folder that is there and that you may write to",
    ),
}
