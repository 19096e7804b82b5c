"""Settings from TOML: tables into dataclasses and back, with errors that name the key.

`changed` is the whole of it: a dataclass and a table of changes give a new dataclass. Unknown keys name
their nearest neighbour, wrong types say what was expected. No torch, no numpy.
"""

import difflib
import json
import sys
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from tenet.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table = dict[str, Any]
Settings = TypeVar("Settings")


def parse_toml(text: str, source: str) -> Table:
    """The table of a TOML text; `source` names it in errors."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: expected TOML, but it does not parse ({error})") from error


def changed(settings: Settings, changes: object, where: str) -> Settings:
    """`settings` (a dataclass) with the fields of the table `changes` replaced, nested tables too."""
    if not isinstance(changes, Mapping):
        raise ConfigError(f"{where}: expected a table such as [{where}], got {changes!r}")
    hints = get_type_hints(type(settings))
    known = [field.name for field in fields(settings)]  # type: ignore[arg-type]
    values: Table = {}
    for key, value in changes.items():
        if key not in known:
            raise unknown_key(key, known, where)
        name, old = f"{where}.{key}", getattr(settings, key)
        values[key] = changed(old, value, name) if is_dataclass(old) else _fitted(value, hints[key], name)
    return replace(settings, **values)  # type: ignore[type-var]


def unknown_key(key: str, known: Iterable[str], where: str) -> ConfigError:
    """The error for a key that is not there: it names the nearest that is."""
    names, path = list(known), f"{where}.{key}" if where else key
    near = difflib.get_close_matches(key, names, 1, 0.5)
    if near:
        hint = f"did you mean {f'{where}.' if where else ''}{near[0]}?"
    else:
        hint = f"expected one of {', '.join(names)}"
    return ConfigError(f"unknown setting {path}; {hint}")


def _fitted(value: object, kind: Any, name: str) -> Any:
    """`value` as the annotation `kind` has it; lists become tuples, whole numbers become floats."""
    if get_origin(kind) in (Union, types.UnionType):
        for option in get_args(kind):
            try:
                return _fitted(value, option, name)
            except ConfigError:
                continue
    elif get_origin(kind) is tuple:
        inner = get_args(kind)
        if isinstance(value, (list, tuple)) and (inner[-1] is ... or len(inner) == len(value)):
            kinds = [inner[0]] * len(value) if inner[-1] is ... else inner
            return tuple(_fitted(item, one, name) for item, one in zip(value, kinds, strict=True))
    elif kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    elif isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise ConfigError(f"{name}: expected {_spelled(kind)}, got {value!r}")


def _spelled(kind: Any) -> str:
    """An annotation in words."""
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text in quotes"}
    if kind in words:
        return words[kind]
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        if inner[-1] is ...:
            return f"a list of {_spelled(inner[0]).removeprefix('a ')}s, such as [1, 2]"
        return f"a list of {len(inner)}"
    return " or ".join(_spelled(option) for option in get_args(kind))


def override(table: Table, assignment: str) -> Table:
    """A copy of `table` with `a.b=value` set; the value is TOML, or else a plain text."""
    path, equals, text = assignment.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set: expected key=value such as train.lr=0.001, got {assignment!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    result = dict(table)
    inner = result
    for key in keys[:-1]:
        below = inner.get(key, {})
        if not isinstance(below, dict):
            raise ConfigError(f"--set {path}: expected a table at {key}, but it is {below!r}")
        inner[key] = inner = dict(below)
    inner[keys[-1]] = value
    return result


def to_table(settings: object) -> Table:
    """A dataclass as a table that JSON and TOML can hold; `changed` reads it."""
    table: Table = {}
    for field in fields(settings):  # type: ignore[arg-type]
        value = getattr(settings, field.name)
        if is_dataclass(value):
            table[field.name] = to_table(value)
        else:
            table[field.name] = list(value) if isinstance(value, tuple) else value
    return table


def write_toml(table: Table, path: str = "") -> str:
    """A table of plain values, lists of them and further tables as TOML."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"{key} = {_toml_value(value)}" for key, value in plain.items()]
    text = "\n".join(lines) + "\n" if lines else ""
    for key, value in table.items():
        if isinstance(value, dict):
            name = f"{path}.{key}" if path else key
            text += f"\n[{name}]\n{write_toml(value, name)}"
    return text


def _toml_value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def differences(one: Table, other: Table, where: str = "") -> list[str]:
    """`a.b: 1 against 2` for each setting in which two tables differ."""
    lines = []
    for key in [*one, *(key for key in other if key not in one)]:
        name = f"{where}.{key}" if where else key
        left, right = one.get(key), other.get(key)
        if isinstance(left, dict) and isinstance(right, dict):
            lines += differences(left, right, name)
        elif left != right:
            lines.append(f"{name}: {left!r} against {right!r}")
    return lines
