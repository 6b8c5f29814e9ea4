"""Passwords and private keys in the stored files of tasks and sources.

A file is stored with them encrypted where this process has a key; all else is as the user wrote it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import yaml

from unshard.config.database import DatabaseConfig, text_of_bytes
from unshard.config.secret import HIDDEN, sealed
from unshard.errors import ClusterError

_TEXT = "tag:yaml.org,2002:str"
_SECRETS = frozenset({"password", "ssl-key-bytes", "ssl-key-base64"})


def kept(text: str) -> str:
    """Return the YAML text of a task or source, comments and all, with its passwords and private keys as stored.

    A YAML alias of a password that loses its anchor by this becomes what it stands for.
    """
    loader = _Scalars(text)
    loader.get_single_node()
    found = loader.found
    stored = {one.begin: sealed(one.node.value) for one in found if one.is_secret and one.node.value}
    changed = {one.begin for one in found if stored.get(one.begin, one.node.value) != one.node.value}
    lost = {id(one.node) for one in found if one.begin in changed and not one.alias}
    for one in sorted(found, key=lambda one: one.begin, reverse=True):
        if one.begin in changed or (one.alias and id(one.node) in lost):
            new = f"'{stored[one.begin]}'" if one.begin in changed else _literal(one.node)
            end = one.begin + len(text[one.begin : one.end].rstrip())  # a block scalar ends at the next key
            space = " " if one.is_list else ""  # its items may stand below the first letter of its key
            text = f"{text[: one.begin]}{space}{new}{text[end:]}"
    return text


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A place in a text where a scalar stands, by itself (`node`, which an anchor may name) or by an alias of it.

    `is_list`: a private key stands there as a list of its bytes, which `node` has as a text.
    """

    begin: int
    end: int
    node: yaml.ScalarNode
    is_secret: bool
    alias: bool
    is_list: bool = False


class _Scalars(yaml.SafeLoader):
    """A loader that notes the place of each scalar and of each alias of one."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.found: list[_Scalar] = []

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose the next node; `index` is the key's node where a value of a mapping is composed."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        before = len(self.found)
        node = super().compose_node(parent, index)
        is_secret = isinstance(index, yaml.ScalarNode) and index.value in _SECRETS
        begin, end = event.start_mark.index, event.end_mark.index
        if isinstance(node, yaml.ScalarNode):
            self.found.append(_Scalar(begin, end, node, is_secret, isinstance(event, yaml.AliasEvent)))
        elif is_secret and isinstance(node, yaml.SequenceNode) and _is_plain_list(event):
            numbers = [item.node.value for item in self.found[before:]]
            with suppress(ValueError):
                key = yaml.ScalarNode(_TEXT, text_of_bytes(numbers))
                self.found[before:] = [_Scalar(begin, node.end_mark.index, key, True, False, True)]
        return node


def _is_plain_list(event: yaml.Event) -> bool:
    """Return whether a list begins there that no alias can stand for."""
    return isinstance(event, yaml.SequenceStartEvent) and event.anchor is None


def _literal(node: yaml.ScalarNode) -> str:
    """Return a scalar in YAML on one line: a text in double quotes, a number or the like plain."""
    return json.dumps(node.value, ensure_ascii=False) if node.tag == _TEXT else str(node.value)


def with_kept_password(draft: str, stored: str) -> str:
    """Return a draft of a task's file with the stored password of `target-database` where it has `******`.

    Raises ClusterError CLUSTER-016 where host, port or user are others than the stored ones, so that a password goes to
    nobody whom it was not written for, and where another secret is `******`.
    """
    try:
        node, old = (yaml.compose(text, Loader=yaml.SafeLoader) for text in (draft, stored))
    except yaml.YAMLError:
        return draft  # its reader tells what is wrong, and where
    login, known = _login(node), _login(old)
    mask = login.get("password")
    if mask is not None and mask.value == HIDDEN:
        if "password" not in known or any(_told(login, key) != _told(known, key) for key in ("host", "port", "user")):
            raise _other_login("target-database")
        secret = known["password"].value.replace("'", "''")
        draft = f"{draft[: mask.start_mark.index]}'{secret}'{draft[mask.end_mark.index :]}"
    if HIDDEN in draft:
        why = f"the draft has {HIDDEN} elsewhere than as the password of target-database: write what stands there"
        raise ClusterError("CLUSTER-016", cause=why)
    return draft


def check_kept_password(section: str, stored: DatabaseConfig, host: str, port: int, user: str) -> None:
    """Raise ClusterError CLUSTER-016 where the stored password would go to another login than it was written for.

    `section` has the login in the file.
    """
    if stored.password and (stored.host, stored.port, stored.user) != (host, port, user):
        raise _other_login(section)


def _other_login(section: str) -> ClusterError:
    why = f"{section} has another host, port or user: write its password, which is not taken over from the old one"
    return ClusterError("CLUSTER-016", cause=why)


def _login(node: yaml.Node | None) -> dict[str, yaml.ScalarNode]:
    """Return the plain values of `target-database`."""
    found = _below(node).get("target-database")
    return {key: value for key, value in _below(found).items() if isinstance(value, yaml.ScalarNode)}


def _below(node: yaml.Node | None) -> dict[str, yaml.Node]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return {key.value: value for key, value in pairs if isinstance(key, yaml.ScalarNode)}


def _told(login: dict[str, yaml.ScalarNode], key: str) -> str:
    return login[key].value if key in login else ""
