"""A file as it is stored: its passwords encrypted where this process has a key, all else as the user wrote it."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from unshard.config.secret import sealed


def kept(text: str) -> str:
    """The YAML text of a task or source, comments and all, with its passwords in the form that is stored."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert node is not None, "the text is a file that was read"
    places = {(one.start_mark.index, one.end_mark.index): one.value for one in _passwords(node, []) if one.value}
    for (begin, end), value in sorted(places.items(), reverse=True):
        new = sealed(value)
        if new != value:
            text = f"{text[:begin]}'{new}'{text[end:]}"
    return text


def _passwords(node: yaml.Node, seen: list[yaml.Node]) -> Iterator[yaml.ScalarNode]:
    """The values of keys `password`; what aliases share, once."""
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
