"""What is shown of files: no secret, whatever the key that holds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unshard.config.files import load_source, load_task, parse_task
from unshard.config.redact import hidden, hidden_text
from unshard.config.subtask import plan_subtasks
from unshard.errors import ConfigError

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT = """
# s3cret
name: t
target-database:
  host: h
  port: 3306
  user: '3306'
  password: s3cret
  session: {a: 1, my_secret: s3cret}
  security: {ssl-ca: ca.pem, ssl-key-bytes: "-----BEGIN s3cret", ssl-key-base64: s3cret}
spark: {conf: {spark.hadoop.fs.s3a.access.key: s3cret, spark.ssl.keyPassword: s3cret, spark.x: y}}
list: [{token: s3cret, token-file: f, secret-key-path: k, password: ''}]
"""


def test_no_secret_is_shown_and_all_else_is() -> None:
    shown = hidden_text(TEXT)
    assert "s3cret" not in shown
    assert shown.count("******") == 7
    assert all(word in shown for word in ("name: t", "ca.pem", "spark.x: y", "token-file: f", "secret-key-path: k"))
    assert "password: ''" in shown
    assert "port: 3306\n" in shown
    assert "user: '3306'" in shown
    assert hidden_text("password: [") == hidden_text("s3cret") == "******"
    assert hidden({"password": ""}) == {"password": ""}


def test_no_secret_within_a_url_is_shown() -> None:
    shown = hidden_text("spark: {remote: 'sc://h:15002/;user_id=u;token=s3cret'}\nstore: mysql://u:s3cret@h:1/d\n")
    assert "s3cret" not in shown
    assert "sc://h:15002/;user_id=u;token=******" in shown
    assert "u:******@h:1/d" in shown


@pytest.mark.parametrize("spark", ["master: 'sc://h:1/;token=s3cret'", "remote: 'http://h:1/;token=s3cret'"])
def test_no_secret_within_a_url_is_in_an_error(spark: str) -> None:
    name = spark.partition(":")[0]
    text = re.sub(rf"(?m)^  {name}: .*$", f"  {spark}", (EXAMPLES / "everything.yaml").read_text())
    with pytest.raises(ConfigError, match="is refused") as raised:
        parse_task(text, "t.yaml")
    assert "s3cret" not in str(raised.value)


def test_a_subtask_is_shown_without_its_secrets() -> None:
    task = load_task(EXAMPLES / "everything.yaml")
    (first, _) = plan_subtasks(task, [load_source(EXAMPLES / f"source-{number}.yaml") for number in (1, 2)])
    security = {"ssl-cert-bytes": "-----BEGIN c", "ssl-key-bytes": "-----BEGIN s3cret"}
    form = first.model_dump(mode="json", by_alias=True)
    form["target"] |= {"password": "s3cret", "security": security}
    form["source"]["from"] |= {"password": "s3cret", "security": security}
    whole = type(first).model_validate(form)
    assert "s3cret" not in str(whole.redacted())
    assert "s3cret" not in repr(whole)
    assert "s3cret" in whole.model_dump_json()


@pytest.mark.parametrize("password", ["p/ss", "p@ss", "p:s@/s"])
def test_a_password_in_a_url_may_have_any_character(password: str) -> None:
    assert hidden({"store": f"mysql://u:{password}@h:1/d"}) == {"store": "mysql://u:******@h:1/d"}


@pytest.mark.parametrize(
    "key",
    [
        "spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net",
        "spark.hadoop.fs.gs.auth.service.account.private.key",
        "spark.hadoop.fs.azure.sas.box.a.blob.core.windows.net",
    ],
)
def test_keys_of_spark_that_hold_a_secret(key: str) -> None:
    assert hidden_text(f"spark: {{conf: {{{key}: s3cret}}}}\n").count("s3cret") == 0
