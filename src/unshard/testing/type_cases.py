"""Column types with values that must arrive unchanged: the definition of a column, and SQL expressions for the values.

`COMMON` works on both flavours, in a session without sql_mode and in UTC; the others are for one flavour.
"""

from __future__ import annotations

from collections.abc import Mapping

Cases = Mapping[str, tuple[str, ...]]


def _integers() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, bits in (("tinyint", 8), ("smallint", 16), ("mediumint", 24), ("int", 32), ("bigint", 64)):
        half, full = 1 << bits - 1, (1 << bits) - 1
        found[name] = (str(-half), str(half - 1), "0", "-1", "1", "NULL")
        found[f"{name} unsigned"] = (str(full), str(half), str(half - 1), "0", "NULL")
    return found | {"int unsigned zerofill": ("0", "7", "4294967295"), "bigint(5) zerofill": ("7", "123456")}


def _decimals() -> dict[str, tuple[str, ...]]:
    """Return every number of digits before and after the point up to two groups of nine, and the largest ones."""
    sizes = [(whole + scale, scale) for whole in range(20) for scale in (0, 1, 3, 4, 6, 9, 10, 18) if whole + scale]
    found = {}
    for precision, scale in [*sizes, (38, 38), (65, 0), (65, 30), (65, 1), (64, 38)]:
        if scale > 30:
            continue
        whole, digits = "9" * (precision - scale) or "0", "9" * scale
        most = f"{whole}.{digits}" if scale else whole
        least = f"0.{'0' * (scale - 1)}1" if scale else "1"
        found[f"decimal({precision},{scale})"] = (most, f"-{most}", least, f"-{least}", "0", "NULL")
    return found | {"decimal(20,9) unsigned": ("12345678901.123456789",), "decimal(9,2) zerofill": ("1.5",)}


def _temporals() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {
        "date": ("'0000-00-00'", "'2024-00-00'", "'2024-12-00'", "'0000-01-01'", "'9999-12-31'", "NULL"),
        "year": ("0", "1901", "2155", "2000", "NULL"),
    }
    for fsp in range(7):
        kind = f"({fsp})" if fsp else ""
        last = "." + "9" * fsp if fsp else ""
        least = "." + "0" * (fsp - 1) + "1" if fsp else ""
        found[f"time{kind}"] = (
            f"'-838:59:59{'.' + '0' * fsp if fsp else ''}'",
            f"'838:59:58{last}'",
            f"'-00:00:00{least}'" if fsp else "'-00:00:01'",
            f"'-00:00:01{last}'",
            f"'-99:59:00{least}'",
            "'00:00:00'",
            f"'23:59:59{last}'",
            "NULL",
        )
        found[f"datetime{kind}"] = (
            "'0000-00-00 00:00:00'",
            f"'2024-00-00 12:30:45{last}'",
            f"'2024-02-30 00:00:00{least}'" if not fsp else f"'2024-02-29 00:00:00{least}'",
            f"'0000-01-01 00:00:00{least}'",
            f"'9999-12-31 23:59:59{last}'",
            "'1000-01-01'",
            "NULL",
        )
        found[f"timestamp{kind} null"] = (
            "'0000-00-00 00:00:00'",
            f"'1970-01-01 00:00:01{last}'",
            f"'2038-01-19 03:14:07{last}'",
            f"'2000-02-29 23:59:59{least}'",
            "NULL",
        )
    return found


def _bits() -> dict[str, tuple[str, ...]]:
    return {f"bit({bits})": ("0", "1", str((1 << bits) - 1), str(1 << bits - 1), "NULL") for bits in range(1, 65)}


def _members() -> dict[str, tuple[str, ...]]:
    odd = ("a,b", "it''s", "back\\\\slash", "é漢", "", " lead", "ü")
    names = ",".join(f"'{name}'" for name in odd)
    found = {
        f"enum({names})": tuple(str(number) for number in range(1, 8)),
        f"set({names.partition(',')[2].partition(',')[2]})": ("0", "~0 & 31", "9"),  # a SET's members hold no comma
    }
    found["enum('x','','0')"] = found["enum('','00') character set ucs2"] = ("0", "1", "2", "NULL")
    for count in (1, 255, 256, 3000):
        listed = ",".join(f"'m{number}'" for number in range(count))
        found[f"enum({listed})"] = ("1", str(count), "NULL", str((count + 1) // 2))
    for count in (1, 7, 8, 9, 16, 17, 24, 25, 32, 33, 40, 63, 64):
        listed = ",".join(f"'m{number}'" for number in range(count))
        found[f"set({listed})"] = ("0", str((1 << count) - 1), str(1 << count - 1), "NULL")
    return found


_TEXTS: dict[str, tuple[str, ...]] = {
    "float": ("0", "-0e0", "1.1", "-3.402823466e38", "1.175494351e-38", "1.4e-45", "16777217", "0.1", "NULL"),
    "float(7,3)": ("1.5", "-9999.999"),
    "double": ("0", "-0e0", "0.1", "1.7976931348623157e308", "2.2250738585072014e-308", "5e-324", "1e16", "NULL"),
    "double(20,5)": ("123456789.12345", "-0.00001"),
    "char(0)": ("''", "NULL"),
    "varchar(0)": ("''", "NULL"),
    "varbinary(0)": ("''", "NULL"),
    "char(1)": ("''", "'é'", "'😀'"),
    "char(10)": ("'  x  '", "'x'", "'\\0'", "'\\t x\\n'", "NULL"),
    "char(63)": ("repeat('😀', 63)", "''"),  # 252 bytes; 64 pass the one-byte length
    "char(64)": ("repeat('😀', 64)", "''"),
    "char(255)": ("repeat('é', 255)", "repeat('😀', 255)", "''"),
    "varchar(63)": ("repeat('😀', 63)", "'a  '"),
    "varchar(64)": ("repeat('😀', 64)", "'a  '"),
    "varchar(4000)": ("repeat('😀', 4000)", "'\\\\ \\' \\\" \\Z \\0'", "''", "NULL"),
    "binary(0)": ("''", "NULL"),
    "binary(4)": ("x'00'", "x'ff000000'", "x'01020304'", "''", "x'20202020'", "NULL"),
    "binary(255)": ("x'01'", "repeat(x'ff', 255)", "repeat(x'00', 255)"),
    "varbinary(255)": ("x'0000'", "repeat(x'ff', 255)", "''"),
    "varbinary(256)": ("x'0000'", "repeat(x'27', 256)", "''"),
    "tinytext": ("''", "repeat('x', 255)", "NULL"),
    "text": ("''", "repeat('x', 65535)", "'é😀'"),
    "mediumtext": ("repeat('x', 65536)", "repeat('é', 100000)"),
    "longtext": ("repeat('x', 20000000)", "''"),
    "tinyblob": ("x'00ff'", "repeat(x'00', 255)", "''"),
    "blob": ("repeat(x'5c', 65535)", "NULL", "''"),
    "mediumblob": ("repeat(x'27', 65536)", "''"),
    "longblob": ("repeat(x'00', 70000)", "''"),
    "varchar(9) character set latin1": ("x'80e9ff'", "''"),
    "varchar(9) character set binary": ("x'ff00'", "''"),
}


def _geometries() -> dict[str, tuple[str, ...]]:
    line, ring = "0 0, 1 1.5, -2 3", "(0 0, 1 0, 1 1, 0 0)"
    kinds = {
        "point": "POINT(3 -4.25)",
        "linestring": f"LINESTRING({line})",
        "polygon": f"POLYGON({ring})",
        "multipoint": "MULTIPOINT(1 1, 2 2)",
        "multilinestring": f"MULTILINESTRING(({line}), (5 5, 6 6))",
        "multipolygon": f"MULTIPOLYGON(({ring}), ((9 9, 9 8, 8 8, 9 9)))",
        "geometrycollection": f"GEOMETRYCOLLECTION(POINT(1 2), LINESTRING({line}))",
    }
    texts = {kind: (f"ST_GeomFromText('{text}')", "NULL") for kind, text in kinds.items()}
    mixed = tuple(f"ST_GeomFromText('{text}', 4326)" for text in kinds.values())
    return texts | {"geometry": (*mixed, "ST_GeomFromText('POINT(0 0)', 0)", "NULL")}


COMMON: Cases = {
    **_integers(),
    **_decimals(),
    **_temporals(),
    **_bits(),
    **_members(),
    **_TEXTS,
    **_geometries(),
}

MARIADB: Cases = {
    "uuid": (
        "'00000000-0000-0000-0000-000000000000'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        "'123e4567-e89b-12d3-a456-426614174000'",  # versions 1 to 5 are swapped in the server's own records
        "'123e4567-e89b-42d3-a456-426614174000'",
        "'123e4567-e89b-62d3-a456-426614174001'",
        "'123e4567-e89b-72d3-a456-426614174000'",
        "'123e4567-e89b-42d3-2456-426614170000'",  # another variant
        "NULL",
    ),
    "inet4": ("'0.0.0.0'", "'255.255.255.255'", "'10.0.1.0'", "'1.0.0.0'", "NULL"),
    "inet6": (
        "'::'",
        "'::1'",
        "'::1.2.3.4'",
        "'::0.1.0.0'",
        "'::ffff:1.2.3.4'",
        "'::fffe:1.2.3.4'",
        "'0:0:0:0:1:ffff:102:304'",
        "'fe80::'",
        "'2001:db8::1'",
        "'1:0:0:2::3'",
        "'1:0:2:0:3:0:4:0'",
        "'a:b:c:d:e:f:0:0'",
        "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'",
        "NULL",
    ),
    "year(2)": (
        *("'0'", "2000", "2001", "70", "1970", "1999", "69", "2069", "NULL"),
        *("1901", "1969", "1950", "2050", "2155", "'0000'"),  # shown as if they were of the other century
    ),
    "json": ("""'{"a": [1, null, "é"]}'""", "NULL"),
    **{
        f"{kind} compressed{more}": ("''", "'short'", *(f"repeat('a', {length})" for length in lengths), "NULL")
        for kind, more, lengths in (
            ("varchar(300)", "", (99, 100, 255, 300)),
            ("varchar(200)", " character set latin1", (99, 101, 200)),
            ("varbinary(100)", "", (50, 100)),
            ("tinytext", "", (100, 254)),
            ("tinyblob", "", (100, 254)),
            ("text", " character set gbk", (100, 300, 65533)),
            ("blob", "", (100, 300, 65533)),
            ("mediumtext", "", (65536, 200000)),
            ("mediumblob", "", (65536, 200000)),
            ("longtext", "", (70000,)),
            ("longblob", "", (70000, 20000000)),
        )
    },
}
