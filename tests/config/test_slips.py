"""Slips as they are made by hand: each answer has file, line, key, and what to write instead; never a secret."""

from __future__ import annotations

import pytest

from unshard.config.files import parse_source, parse_task
from unshard.errors import ConfigError

TASK = """\
name: shop
task-mode: all
meta-schema: dm_meta
target-database:
  host: 127.0.0.1
  port: 4000
  user: root
  password: "geheim"
block-allow-list:
  shop:
    do-dbs: ["shop_*"]
routes:
  shop-orders:
    schema-pattern: "shop_*"
    target-schema: shop
mysql-instances:
  - source-id: shop-01
    block-allow-list: shop
    route-rules: [shop-orders]
"""
SLIPS = [
    ('do-dbs: ["shop_*"]', 'do-dbs: ["shop_*"', 11, "do-dbs", "the [ that begins here is not closed; write ]"),
    ("route-rules: [shop-orders]", "route-rules: [shop-orders, b", 19, "route-rules", "write ] at its end"),
    ('["shop_*"]', '["shop_*" "b"]', 11, "do-dbs", "a comma between two values is missing"),
    ('["shop_*"]', '["shop_*", , "b"]', 11, "do-dbs", "take the comma out"),
    ('["shop_*"]', "[*shop]", 11, "do-dbs", "write it in quotes"),
    ('schema-pattern: "shop_*"', "schema-pattern: *", 14, "schema-pattern", "write it in quotes"),
    ("  host: 127", "\thost: 127", 5, "host", "a tab; indent with blanks"),
    ("port: 4000", "port:\t4000", 6, "port", "a tab; write a blank"),
    ("port: 4000", "port:\u00a04000", 6, "port", "write a plain blank"),
    ("  port: 4000", " port: 4000", 6, "port", "indented by 1, and the line above by 2 blanks"),
    ("  port: 4000", "    port: 4000", 6, "port", "indented by 4, and the line above by 2 blanks"),
    ("  - source-id", "  -source-id", 17, "source-id", "write `- key: value`"),
    ("task-mode: all", "task-mode:all", 2, "task-mode", "a blank is missing behind the colon"),
    ("task-mode: all", "task-mode = all", 2, "task-mode", "write `key: value`"),
    ("target-database:", "target-database", 4, "target-database", "no colon follows the key"),
    ('"geheim"', '"geheim', 8, "target-database.password", "write the same quote behind the value"),
    ('"geheim"', "@geheim", 8, "target-database.password", "write it in quotes"),
    ('"geheim"', "{geheim", 8, "target-database.password", "put the whole value in quotes"),
    ('"geheim"', "ge: heim", 8, "target-database.password", "put the value in quotes"),
    ('"geheim"', '"\\geheim"', 8, "target-database.password", "single quotes"),
    ('"geheim"', "#geheim", 8, "target-database.password", "put the password in quotes"),
    ("target-schema: shop", "target-schema: 'shop", 15, "target-schema", "write the same quote"),
    ("target-schema: shop", "target-schema: shop: a", 15, "target-schema", "put the value in quotes"),
    ("target-schema: shop", 'target-schema: "shop" x', 15, "target-schema", "put all of it in one pair of quotes"),
    ("target-schema: shop", "target-schema: |shop", 15, "target-schema", "write it in quotes"),
    ("target-schema: shop", "target-schema: - shop", 15, "target-schema", "write [a, b]"),
    ("task-mode: all", "task-mode: a\x07ll", 2, "task-mode", "take it out"),
    ("task-mode: all", "<<<<<<< HEAD\ntask-mode: all", 2, "", "keep one of the two versions"),
    ("name: shop", "[task]\nname: shop", 1, "", "write `name:` and its keys"),
    ("mysql-instances:", "---\nmysql-instances:", 16, "", "put the second into a file of its own"),
    ("  user: root", "  user: root\n  user: adm", 7, "target-database.user", "keep one"),
    ('["shop_*"]', '"shop_*"', 11, "do-dbs", 'write a list: ["shop_*"]'),
    ("route-rules: [shop-orders]", "route-rules: shop-orders", 19, "route-rules", 'write a list: ["shop-orders"]'),
    ('schema-pattern: "shop_*"', "schema-pattern: {shop}", 14, "schema-pattern", "write a text, not a mapping"),
    ('["shop_*"]', "[\u201cshop_*\u201d]", 11, "do-dbs", "write \" or ' around it"),
    ("- source-id: shop-01\n    block", "source-id: shop-01\n    block", 18, "", "alike"),
    ("do-dbs", "do-db", 11, "do-db", "did you mean `do-dbs`?"),
]


@pytest.mark.parametrize(("sound", "slip", "line", "key", "meant"), SLIPS)
def test_a_slip_is_told_with_its_place_and_what_is_meant(
    sound: str, slip: str, line: int, key: str, meant: str
) -> None:
    assert TASK.count(sound) == 1
    with pytest.raises(ConfigError) as caught:
        parse_task(TASK.replace(sound, slip), "task.yaml")
    told = str(caught.value)
    assert caught.value.where.file == "task.yaml"
    assert f"line {line}" in told, told
    assert key in told, told
    assert meant in told, told
    assert "geheim" not in told
    assert "heim" not in told
    if caught.value.code == "CONFIG-003":
        place, shown, mark = caught.value.cause.split("\n")
        column = int(place.split("column ")[1].split(",")[0].split(":")[0])
        assert mark.index("^") - 7 <= column - 1
        assert shown.strip()


def test_the_mark_stands_below_the_slip() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_task(TASK.replace('["shop_*"]', "[*shop]"))
    _, shown, mark = caught.value.cause.split("\n")
    assert shown[mark.index("^")] == "*"


@pytest.mark.parametrize(
    "sign", ["*", "&", "@", "%", "`", "[", "{", '"', "'", "|", ">", "a: ", "\t", '"\\', "- ", "? "]
)
@pytest.mark.parametrize(
    "form", ["  password: {}", "  pasword: {}", "  {{user: root, password: {}", "  password:\n    {}"]
)
def test_no_password_is_ever_shown(sign: str, form: str) -> None:
    text = "source-id: a\nfrom:\n" + form.format(f"{sign}geheim") + "\n  host: x\n"
    with pytest.raises(ConfigError) as caught:
        parse_source(text)
    assert "geheim" not in str(caught.value)
