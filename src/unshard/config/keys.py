"""Checks the keys of a config file against the models: renames old keys, drops empty ones and refuses unknown ones.

The error for an unknown key names the nearest known one.
"""

from __future__ import annotations

from types import UnionType
from typing import Any, Union, get_args, get_origin

from unshard.config.document import Document
from unshard.config.problems import KeyPath, problem, suggestion
from unshard.config.section import Section


def adopt(model: type[Section], data: Any, path: KeyPath, document: Document) -> Any:
    """Return `data` with only the keys that `model` has, under their present names.

    Problems are added to the document's `problems`, and its `lines` get a renamed key under both names. A key with an
    empty value counts as not set, as in DM. dmctl writes a key under its old and its new name, with one of them empty
    or both equal, which is accepted. Data that isn't a mapping is returned unchanged, as the model refuses it.
    """
    if not isinstance(data, dict):
        return data
    known = {info.alias or name: info.annotation for name, info in model.model_fields.items()}
    adopted: dict[str, Any] = {}
    for key, value in data.items():
        name = model.old_names.get(key, key)
        if name not in known:
            fault = "unknown key" + suggestion(key, [*known, *model.old_names])
            document.problems.append(problem((*path, key), fault))
        elif name != key and name in data and (_empty(value) or value == data[name]):
            continue
        elif name != key and not _empty(data.get(name)):
            fault = f"the old name of `{name}`, which is set too; keep `{name}`"
            document.problems.append(problem((*path, key), fault))
        elif value is not None and not (name == key and _says_nothing(value, model, name, data)):
            if name != key:
                _rename((*path, key), (*path, name), document)
            adopted[name] = _adopt_value(known[name], value, (*path, name), document)
    return adopted


def _empty(value: Any) -> bool:
    return value in (None, "", [], {})


def _says_nothing(value: Any, model: type[Section], name: str, data: dict[str, Any]) -> bool:
    """Return whether a key is only present because dmctl writes every key.

    That is so if its value is empty and an old name of it has a value, or if it is an optional section whose keys are
    all empty.
    """
    if _empty(value) and any(new == name and not _empty(data.get(old)) for old, new in model.old_names.items()):
        return True
    info = next(info for field, info in model.model_fields.items() if (info.alias or field) == name)
    if info.default is not None or not isinstance(value, dict) or not value:
        return False
    return all(_empty(item) or (key == "binlog-pos" and item == "0") for key, item in value.items())


def _rename(old: KeyPath, new: KeyPath, document: Document) -> None:
    depth = len(old)
    renamed = {(*new, *path[depth:]): line for path, line in document.lines.items() if path[:depth] == old}
    document.lines.update(renamed)


def _adopt_value(annotation: Any, value: Any, path: KeyPath, document: Document) -> Any:
    shape, model = section_of(annotation)
    if model is None:
        return value
    if shape is dict and isinstance(value, dict):
        # an empty rule is a rule with nothing set, not an absent one
        return {
            name: adopt(model, {} if item is None else item, (*path, name), document) for name, item in value.items()
        }
    if shape is tuple and isinstance(value, list):
        return [adopt(model, item, (*path, index), document) for index, item in enumerate(value)]
    return adopt(model, value, path, document) if shape is None else value


def section_of(annotation: Any) -> tuple[Any, type[Section] | None]:
    """Return how a field holds sections: (None | dict | tuple, the section's model).

    The model is None if it holds none.
    """
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return section_of(next(part for part in parts if part is not type(None)))
    if origin is dict:
        return dict, section_of(parts[1])[1]
    if origin is tuple:
        return tuple, section_of(parts[0])[1]
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return None, annotation
    return None, None
