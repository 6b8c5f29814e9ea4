"""Columns with odd values, and expressions over them: numbers, texts, times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Columns = dict[str, tuple[str, ...]]

NUMBERS: Columns = {
    "ti tinyint": ("-128", "127", "0", "-1", "5", "NULL", "7"),
    "tu tinyint unsigned": ("255", "0", "1", "NULL", "5", "200"),
    "i int": ("-2147483648", "2147483647", "0", "NULL", "-7", "7", "10", "5"),
    "iu int unsigned": ("4294967295", "0", "7", "NULL", "10", "3"),
    "b bigint": ("-9223372036854775808", "9223372036854775807", "9007199254740993", "NULL", "0", "5", "-5"),
    "bu bigint unsigned": ("18446744073709551615", "9223372036854775808", "0", "NULL", "5", "9007199254740993"),
    "y year": ("0", "1901", "2155", "2000", "NULL", "2024"),
    "d decimal(10,2)": ("99999999.99", "-99999999.99", "0.00", "0.01", "-0.01", "NULL", "5", "7.50"),
    "dw decimal(65,30)": ("12345678901234567890123456789012345.000000000000000000000000000001", "5", "NULL", "-0.5"),
    "f float": ("0.1", "-0e0", "16777217", "3.402823466e38", "NULL", "5", "0.5", "7.5"),
    "r double": ("0.1", "-0e0", "9007199254740993", "1.7976931348623157e308", "5e-324", "NULL", "5", "7.5"),
}
_WORDS = (
    "''", "'a'", "'A'", "'a '", "'a  '", "' a'", "'á'", "'À'", "'ab'", "'aB'", "'a_b'", "'a%b'", "'a\\tb'", "'a\\n'",
    "'a\\t'", "NULL", "'5'", "'05'", "'5x'", "'paid'", "'PAID '", "'Päid'", "'ß'", "'ss'", "'b'", "'B'", "'z'", "'AB'",
)  # fmt: skip
_WIDE = (
    *_WORDS,
    "'\uff41'",
    "'a\\0'",
    "'\\0'",
    "'a\u00ad'",
    "'ﬁ'",
    "'fi'",
    "'上海'",
    "'上'",
    "'😀'",
    "'æ'",
    "'ae'",
    "'㈱'",
    "'a\u0301'",
    "'\u3000'",
    "'a\u3000'",
    "'\u00a0a'",
    "'\uffff'",
    "'\ufffd'",
    "'\uff50\uff41\uff49\uff44'",
)
TEXTS: Columns = {
    "g varchar(20) character set utf8mb4 collate utf8mb4_general_ci": _WIDE,
    "uc varchar(20) character set utf8mb4 collate utf8mb4_unicode_ci": _WIDE,
    "n text character set utf8mb4 collate utf8mb4_bin": _WIDE,
    "c char(20) character set utf8mb4 collate utf8mb4_general_ci": _WIDE,
    "l varchar(20) character set latin1 collate latin1_swedish_ci": (*_WORDS, "'å'", "'['", "'ö'", "'ü'", "'y'"),
    "lb varchar(20) character set latin1 collate latin1_bin": (*_WORDS, "'€'"),
    "e enum('new','paid','PAIN','5') character set utf8mb4 collate utf8mb4_general_ci": (*"12340", "NULL"),
    "s set('a','b','c') character set utf8mb4 collate utf8mb4_general_ci": ("0", "1", "3", "7", "NULL"),
    "vb varbinary(20)": ("''", "'a'", "'A'", "'a '", "x'00'", "x'ff'", "NULL", "'ab'"),
    "bi binary(3)": ("'a'", "'A'", "x'00'", "NULL", "'abc'"),
}  # fmt: skip
MYSQL_TEXTS: Columns = {
    "ai varchar(20) character set utf8mb4 collate utf8mb4_0900_ai_ci": _WIDE,
    "zb varchar(20) character set utf8mb4 collate utf8mb4_0900_bin": _WIDE,
}
MARIADB_TEXTS: Columns = {
    "ai varchar(20) character set utf8mb4 collate utf8mb4_uca1400_ai_ci": _WIDE,
    "zb varchar(20) character set utf8mb4 collate utf8mb4_nopad_bin": _WIDE,
    "ng varchar(20) character set utf8mb4 collate utf8mb4_general_nopad_ci": _WIDE,
}
TIMES: Columns = {
    "da date": ("'0000-00-00'", "'2024-00-00'", "'2024-05-00'", "'2024-05-01'", "'9999-12-31'", "NULL"),
    "dn date not null": ("'0000-00-00'", "'2024-05-01'"),
    "dt datetime": ("'0000-00-00 00:00:00'", "'2024-05-01 00:00:00'", "'2024-00-00 10:11:12'", "NULL"),
    "dm datetime(3)": ("'2024-05-01 00:00:00.000'", "'2024-05-01 00:00:00.001'", "'0000-00-00 00:00:00'", "NULL"),
    "ts timestamp null": ("'0000-00-00 00:00:00'", "'2024-05-01 00:00:00'", "'2024-04-30 18:30:00'", "NULL"),
    "tf timestamp(6) null": ("'2024-05-01 00:00:00.000001'", "'2024-04-30 18:30:00'", "NULL"),
    "tm time": ("'-838:59:59'", "'838:59:59'", "'00:00:00'", "NULL"),
    "j json": ("'{}'", "NULL", "'null'"),
    "bt bit(8)": ("0", "1", "255", "NULL"),
}  # fmt: skip

SIGNS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
LITERALS = (
    "0", "5", "-5", "7", "255", "10", "0.1", "7.5", "-0.01", "2147483647", "9223372036854775807", "1e0", "0.5", "2000",
    "9223372036854775808", "18446744073709551615", "9007199254740993", "'5'", "'05'", "'5x'", "1901", "NULL", "99",
    "16777217", "12345678901234567890123456789012345.000000000000000000000000000001",
)  # fmt: skip
_WORD_LITERALS = (
    "''", "' '", "'a'", "'A'", "'a '", "'a_b'", "'ab'", "'paid'", "'PAID'", "'5'", "'上'", "'上海'", "'fi'", "'ae'",
    "'ss'", "'á'", "'ß'", "NULL", "5", "'😀'", "'z'", "'y'", "'['", "x'61'", "x'00'", "'(株)'", "'a\tb'", "'a!'",
    "'new'", "1", "0",
)  # fmt: skip
_PATTERNS = (
    "'a%'", "'%a'", "'_'", "'__'", "'a_b'", "'a|_b'", "'%|%%'", "'A%B'", "'%'", "''", "'_a'", "'a '", "'%i%'", "'%上%'",
    "'p__d'", "'%\t%'",
)  # fmt: skip
_DATES = (
    "'2024-05-01'", "'2024-05-01 00:00:00'", "'2024-05-01 05:30:00'", "'2000-01-01'", "'2024-05-01 23:59:59'", "NULL",
    "'2024-05-01 00:00:00.001'", "'2024-05-01 00:00:00.5'", "'0000-00-00'", "'2024-02-30'", "20240501", "'24-05-01'",
    "'x'", "0", "1", "2024",
)  # fmt: skip


def names(columns: Columns) -> list[str]:
    return [definition.split()[0] for definition in columns]


def of_numbers() -> Iterator[str]:
    for c in names(NUMBERS):
        yield from (f"{c} {sign} {literal}" for sign in SIGNS for literal in LITERALS)
        yield from (f"{literal} < {c}" for literal in LITERALS)
        for other in names(NUMBERS):
            yield from (f"{c} {sign} {other}" for sign in ("=", "<", "<=>"))
            yield from (f"{c} {sign} {other} > 5" for sign in ("+", "-", "*", "%", "DIV", "/", "MOD"))
        for number in ("2", "3", "-3", "0", "5.5", "NULL"):
            for sign in ("+", "-", "*", "%", "DIV", "/"):
                yield from (f"{c} {sign} {number} = 1", f"{c} {sign} {number} < 3", f"{number} {sign} {c} > 0")
                yield from (f"({c} {sign} {number}) IS NULL", f"{c} {sign} {number} - 1 > 0")
        yield from (c, f"NOT ({c})", f"-{c} > 0", f"ABS({c}) > 5", f"{c} IS NULL", f"{c} IS TRUE", f"{c} IS NOT FALSE")
        yield from (f"{c} IN (5, 7, NULL)", f"{c} NOT IN (5, 7)", f"{c} NOT IN (5, NULL)", f"{c} IN (5, '7')")
        yield from (f"{c} BETWEEN -5 AND 7", f"{c} NOT BETWEEN 0 AND 7.5", f"{c} BETWEEN NULL AND 5")
        yield from (f"{c} = 5 OR i > 0", f"{c} = 5 AND NOT (i > 0)", f"({c} = 5) = (i > 0)", f"({c} > 5) IS UNKNOWN")
        yield from (f"COALESCE({c}, 0) = 0", f"IFNULL({c}, -1) < 0", f"NULLIF({c}, 5) IS NULL", f"IF({c} > 0, 1, 0)")
        yield f"CASE WHEN {c} > 5 THEN 1 WHEN {c} < 0 THEN 0 ELSE NULL END"
        yield from (f"IF({c} > 0, {c}, 0) = 5", f"COALESCE(NULL, {c}) - 1 > 4", f"{c} * 2 + 1 > i", f"{c} IN ('5','7')")


def of_texts(columns: Sequence[str]) -> Iterator[str]:
    for c in columns:
        charset = "latin1" if c in ("l", "lb") else "utf8mb4"
        for literal in _WORD_LITERALS:
            yield from (f"{c} {sign} {literal}" for sign in ("=", "<>", "<=>", "<", ">=", "LIKE", "NOT LIKE"))
            yield from (f"{c} COLLATE {charset}_bin {sign} {literal}" for sign in ("=", "<", ">", "<=", "LIKE"))
            yield f"{c} COLLATE utf8mb4_general_ci = {literal}"
        for pattern in _PATTERNS:
            yield from (f"{c} LIKE {pattern}", f"{c} NOT LIKE {pattern} ESCAPE '|'", f"{c} LIKE {pattern} ESCAPE 'a'")
        yield from (f"{c} {sign} {other}" for other in columns for sign in ("=", "<"))
        yield from (f"LENGTH({c}) = 1", f"CHAR_LENGTH({c}) = 1", f"LENGTH({c}) > 2", f"CHAR_LENGTH({c}) - 5 < 0")
        yield from (
            f"LEFT({c},1) = 'a'",
            f"SUBSTRING({c},2) = 'b'",
            f"SUBSTR({c},1,2) = 'ab'",
            f"LEFT({c},2) LIKE 'a_'",
        )
        yield from (f"{c} IN ('a','paid',NULL)", f"{c} NOT IN ('a','b')", f"{c} BETWEEN 'a' AND 'b'", f"{c} IS NULL", c)
        yield from (f"{c} IN (1,2)", f"{c} IN (5,'a')", f"LEFT({c},0) = ''", f"CHAR_LENGTH(LEFT({c},3)) = 3")


def of_times() -> Iterator[str]:
    columns = names(TIMES)
    for c in columns:
        yield from (f"{c} {sign} {literal}" for sign in ("=", "<", ">=", "<>", "<=>") for literal in _DATES)
        for part in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DAYOFMONTH"):
            yield from (f"{part}({c}) = {number}" for number in (0, 5, 10, 2024))
            yield from (f"{part}({c}) IN (1, 5)", f"{part}({c}) - 5 < 0")
        yield from (f"{c} BETWEEN '2000-01-01' AND '2024-05-01'", f"{c} IN ('2024-05-01','2000-01-01')", c)
        yield from (f"({c}) IS NULL", f"(({c})) IS NOT NULL")
        yield from (f"{c} IS NULL", f"{c} IS NOT NULL", f"NOT ({c} = '2024-05-01')", f"DATE({c}) = '2024-05-01'")
        yield from (f"{c} {sign} {other}" for other in columns[:6] for sign in ("=", "<"))
