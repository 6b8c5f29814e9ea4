"""Prepares files and JSON forms for display: every secret is replaced by `******`."""

from __future__ import annotations

import re
from typing import Any

import yaml

from unshard.config.secret import HIDDEN
from unshard.credentials import without_credentials

_SECRET = re.compile(
    r"password|passwd|secret(?![-_]?key[-_]path)|token(?![-_]file)|access[._-]?key|account[._-]?key|private[._-]?key|\.sas\.|credential|ssl[-_]key[-_](bytes|base64)",
    re.IGNORECASE,
)
"""Names of keys whose value is a secret, in Spark's `conf` and in sessions too."""


def is_secret(key: str) -> bool:
    """Return whether the value of a key of that name is a secret."""
    return _SECRET.search(key) is not None


def hidden(form: Any) -> Any:
    """Return the same mappings and lists, with `******` for every secret, found by its key or within a URL."""
    if isinstance(form, dict):
        return {key: _shown(key, value) for key, value in form.items()}
    if isinstance(form, list | tuple):
        return [hidden(item) for item in form]
    return without_credentials(form) if isinstance(form, str) else form


def hidden_text(text: str) -> str:
    """Return a task or source file's text for display: its keys in order, secrets as `******`, without comments.

    A text that is no YAML mapping is shown as `******`.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        node = None
    if not isinstance(node, yaml.MappingNode):
        return HIDDEN
    _hide(node, set())
    return str(yaml.serialize(node, Dumper=yaml.SafeDumper, allow_unicode=True))


def _hide(node: yaml.Node, seen: set[int]) -> None:
    """Replace every secret below `node` by `******`. Everything else stays as it is written: 3306 and "3306" differ."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        node.value = without_credentials(node.value)
    elif isinstance(node, yaml.MappingNode):
        node.value = [(key, _without_secret(key, value)) for key, value in node.value]
    for below in node.value if isinstance(node, yaml.CollectionNode) else ():
        for one in below if isinstance(below, tuple) else (below,):
            _hide(one, seen)


def _without_secret(key: yaml.Node, value: yaml.Node) -> yaml.Node:
    secret = isinstance(key, yaml.ScalarNode) and _SECRET.search(key.value)
    if not secret or isinstance(value, yaml.MappingNode) or not value.value:
        return value
    return yaml.ScalarNode("tag:yaml.org,2002:str", HIDDEN, style="'")


def _shown(key: Any, value: Any) -> Any:
    if isinstance(key, str) and not isinstance(value, dict) and is_secret(key):
        return HIDDEN if value else value
    return hidden(value)
