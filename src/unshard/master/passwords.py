"""Passwords in the stored files of tasks and sources.

A file is stored with its passwords encrypted where this process has a key; all else is as the user wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from unshard.config.secret import HIDDEN, sealed
from unshard.errors import ClusterError


def kept(text: str) -> str:
    """Return the YAML text of a task or source, comments and all, with its passwords in the stored form."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert node is not None, "the text is a file that was read"
    places = {(one.start_mark.index, one.end_mark.index): one.value for one in _passwords(node, []) if one.value}
    for (begin, end), value in sorted(places.items(), reverse=True):
        new, end = sealed(value), begin + len(text[begin:end].rstrip())  # a block scalar ends at the next key
        if new != value:
            text = f"{text[:begin]}'{new}'{text[end:]}"
    return text


def _passwords(node: yaml.Node, seen: list[yaml.Node]) -> Iterator[yaml.ScalarNode]:
    """Yield the values of keys `password`; those that YAML aliases share, once."""
    if any(node is one for one in seen):
        return
    seen.append(node)
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _passwords(item, seen)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(value, yaml.ScalarNode) and isinstance(key, yaml.ScalarNode) and key.value == "password":
                yield value
            else:
                yield from _passwords(value, seen)


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
            why = f"target-database has another host, port or user: write its password in the place of {HIDDEN}"
            raise ClusterError("CLUSTER-016", cause=why)
        secret = known["password"].value.replace("'", "''")
        draft = f"{draft[: mask.start_mark.index]}'{secret}'{draft[mask.end_mark.index :]}"
    if HIDDEN in draft:
        why = f"the draft has {HIDDEN} elsewhere than as the password of target-database: write what stands there"
        raise ClusterError("CLUSTER-016", cause=why)
    return draft


def _login(node: yaml.Node | None) -> dict[str, yaml.ScalarNode]:
    """Return the plain values of `target-database`."""
    found = _below(node).get("target-database")
    return {key: value for key, value in _below(found).items() if isinstance(value, yaml.ScalarNode)}


def _below(node: yaml.Node | None) -> dict[str, yaml.Node]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return {key.value: value for key, value in pairs if isinstance(key, yaml.ScalarNode)}


def _told(login: dict[str, yaml.ScalarNode], key: str) -> str:
    return login[key].value if key in login else ""
