"""The secrets in a stored file: covered where it is shown, encrypted where it is kept. All else stays as written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import yaml

from unshard.config.secret import sealed

SHOWN = "******"
_PASSWORD = "password"
_SECRET = frozenset(
    {_PASSWORD, *(f"ssl-{part}-{form}" for part in ("ca", "cert", "key") for form in ("bytes", "base64"))}
)
_SECRET_WORDS = ("password", "secret", "token", "credential", "key")
"""A Spark property whose name has one of these may be one."""


def hidden(text: str) -> str:
    """The YAML text with `******` for each secret; an empty one stays, as it says that there is none."""
    return _changed(text, _is_secret, lambda secret: SHOWN)


def kept(text: str) -> str:
    """The YAML text with its passwords in the form that is stored: encrypted, where this process has a key."""
    return _changed(text, lambda name, above: name == _PASSWORD, sealed)


def _changed(text: str, chosen: Callable[[str, str], bool], change: Callable[[str], str]) -> str:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert node is not None, "the text is a file that was read"
    places = {
        (scalar.start_mark.index, scalar.end_mark.index): scalar.value
        for name, above, scalar in _scalars(node, "", [])
        if scalar.value and chosen(name, above)
    }
    for (begin, end), value in sorted(places.items(), reverse=True):
        new = change(value)
        if new != value:
            text = text[:begin] + _quoted(new) + text[end:]
    return text


def _scalars(node: yaml.Node, above: str, seen: list[yaml.Node]) -> Iterator[tuple[str, str, yaml.ScalarNode]]:
    """(key, the key above it, value) of each scalar that stands under a key; what aliases share, once."""
    if any(node is one for one in seen):
        return
    seen.append(node)
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalars(item, above, seen)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = key.value.replace("_", "-").lower() if isinstance(key, yaml.ScalarNode) else ""
            if isinstance(value, yaml.ScalarNode):
                yield name, above, value
            else:
                yield from _scalars(value, name, seen)


def _is_secret(name: str, above: str) -> bool:
    return name in _SECRET or (above == "conf" and any(word in name for word in _SECRET_WORDS))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
