"""`extra-args` and sizes of a dump."""

from __future__ import annotations

from typing import Any

import pytest

from unshard.config.dump_flags import DumpFlags, UnsupportedFlag, parse_flags, parse_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", DumpFlags()),
        ("-B test -T t1,t2", DumpFlags(databases=("test",), tables=(("test", "t1"), ("test", "t2")))),
        ("-T a.t1,b.t2", DumpFlags(tables=(("a", "t1"), ("b", "t2")))),
        ("--database=a,b --tables-list a.t", DumpFlags(databases=("a", "b"), tables=(("a", "t"),))),
        ("-Ba", DumpFlags(databases=("a",))),
        ("-F 256 -r 1000 -s 2000000", DumpFlags(chunk_bytes=256 << 20, rows=1000, statement_bytes=2_000_000)),
        ("--filesize 1GiB --rows=5 --statement-size=6", DumpFlags(chunk_bytes=1 << 30, rows=5, statement_bytes=6)),
        ("--where 'a > 1 AND b = \"x y\"'", DumpFlags(where='a > 1 AND b = "x y"')),
        ("--consistency none", DumpFlags(consistency="none")),
        ("--consistency=lock", DumpFlags(consistency="lock")),
        ("--no-locks", DumpFlags(consistency="none")),
        ("-t 8 -W --escape-backslash=true --transactional-consistency", DumpFlags(threads=8, escape_backslash=True)),
        ("--escape-backslash", DumpFlags(escape_backslash=True)),
        ("--escape-backslash=false", DumpFlags(escape_backslash=False)),
        ("-B=a -t=2", DumpFlags(databases=("a",), threads=2)),
        ("-f 'a.*,!a.t_*' --filter=b.t", DumpFlags(filters=("a.*", "!a.t_*", "b.t"))),
    ],
)
def test_flags_are_read(text: str, expected: DumpFlags) -> None:
    assert parse_flags(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("--where 'a", "a quote is not closed"),
        ("t1", "a value without a flag"),
        ("-r", "-r needs a value"),
        ("-r five", "takes a whole number"),
        ("-r 1 --rows 2", "--rows is given twice; keep one"),
        ("-F 0", "write a size over 0"),
        ("-T t1", "-T needs schema.table, or one schema under -B"),
        ("-B a,b -T t1", "-T needs schema.table"),
        ("-B a -T b.t", "schema `b`, which -B leaves out"),
        ("-B a, -T t", "an empty name in -B or -T"),
        ("-T .t", "-T needs schema.table"),
        ("--no-locks=1", "--no-locks takes no value"),
        ("-f a.b -T a.b", "-T and --filter both choose tables; keep one"),
        ("-f a", "--filter needs schema.table"),
        ("-f @nowhere", "--filter names a file that can't be read: FileNotFoundError"),
        ("--no-locks --consistency none", "say the same; keep one"),
        ("--consistency some", "--consistency takes one of auto, none, flush, lock"),
    ],
)
def test_a_wrong_flag_says_what_instead(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_flags(text)


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("-m", "-m: the load makes the tables by their structures; take it out"),
        ("--sql 'SELECT 1'", "--sql: whole tables are copied, or rows by --where; take it out"),
        ("--regex x", "--regex: write --filter with /…/; take it out"),
        ("--snapshot x", "--snapshot: only TiDB reads the past; take it out"),
        ("--ca x", "--ca: `security` under `from` of the source file has them; take it out"),
        ("--password=secret", "--password: `from` of the source file has it; take it out"),
        ("-psecret", "-p: `from` of the source file has it; take it out"),
        ("-W=false", "-W=false; take it out"),
        ("--nonsense", "--nonsense; take it out"),
    ],
)
def test_a_flag_without_a_meaning_here_is_refused_by_name_and_reason(flag: str, reason: str) -> None:
    with pytest.raises(UnsupportedFlag) as caught:
        parse_flags(flag)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("text", "size"),
    [("64", 64 << 20), (" 1 ", 1 << 20), ("64MiB", 64 << 20), ("64MB", 64 << 20), ("64m", 64 << 20),
     ("512KiB", 512 << 10), ("1 GiB", 1 << 30), ("1T", 1 << 40), ("100B", 100)],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "64X", "MiB", "64iB", "x64"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="write a size over 0"):
        parse_size(text)


@pytest.mark.parametrize(
    ("key", "value", "flag"),
    [
        ("rows", 5, "-r 6"),
        ("threads", 5, "-t 6"),
        ("where", "a", "--where b"),
        ("statement-size", 5, "-s 6"),
        ("chunk-filesize", 5, "-F 6"),
    ],
)
def test_a_setting_is_given_by_key_or_by_flag(files: Any, key: str, value: Any, flag: str) -> None:
    instance = {"source-id": "s1", "mydumper": {key: value, "extra-args": flag}}
    (found,) = files.task_problems(mysql_instances=[instance])
    assert found == f"mysql-instances[0].mydumper: {key} is set, and in extra-args too; keep one"
