"""Settings in configuration files that a script is given: YAML, JSON and TOML below the working directory."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.vary.settings.find import NOT_SETTINGS, Setting

SUFFIXES = (".yaml", ".yml", ".json", ".toml")

LARGEST = 100_000
"""Bytes of a file: a larger one holds data."""

A_LINE = re.compile(rb"^(?P<key>[A-Za-z_][\w.-]*)\s*=\s*(?P<value>[^#\n]+?)\s*(?:#.*)?$", re.MULTILINE)


def named_in(texts: Iterable[str], arguments: Iterable[str]) -> list[str]:
    """Configuration files that code, or the command line, names."""
    pattern = re.compile(r"[\"']([^\"'\n]+\.(?:ya?ml|json|toml))[\"']")
    words = [
        *(word.rpartition("=")[2] for word in arguments),
        *(each for text in texts for each in pattern.findall(text)),
    ]
    here = os.path.realpath(os.getcwd()) + os.sep
    found = []
    for word in dict.fromkeys(words):
        path = Path(word)
        with suppress(OSError):
            below = os.path.realpath(path).startswith(here)
            if path.suffix in SUFFIXES and below and path.is_file() and path.stat().st_size <= LARGEST:
                found.append(word)
    return found


def settings_in(file: str, data: bytes) -> Iterator[Setting]:
    """The numbers, words and truth values of one file."""
    if file.endswith(".toml"):
        for match in A_LINE.finditer(data):
            value = _toml(match["value"].decode("utf-8", "replace"))
            if value is not None:
                yield _setting(file, match["key"].decode(), value, data, match.start("value"), match.end("value"))
        return
    import yaml

    text = data.decode("utf-8")
    with suppress(yaml.YAMLError):
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        yield from _of_node(file, "", node, data, text) if node is not None else ()


def _of_node(file: str, path: str, node: Any, data: bytes, text: str) -> Iterator[Setting]:
    import yaml

    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        name = f"{path}.{key.value}" if path else str(key.value)
        if isinstance(value, yaml.MappingNode):
            yield from _of_node(file, name, value, data, text)
        elif isinstance(value, yaml.ScalarNode):
            found = yaml.SafeLoader("").construct_object(value) if value.tag != "tag:yaml.org,2002:null" else None
            if isinstance(found, str) and (number := _number(found)) is not None:
                found = number  # YAML 1.1 takes 1e-3 for a word; the libraries that read it do not
            if isinstance(found, bool | int | float | str):
                start, end = (len(text[: mark.index].encode()) for mark in (value.start_mark, value.end_mark))
                yield _setting(file, name, found, data, start, end)


def _setting(file: str, name: str, value: Any, data: bytes, start: int, end: int) -> Setting:
    return Setting(name, "in a file", file, file, data.count(b"\n", 0, start) + 1, value, start, end)


def is_one(setting: Setting) -> bool:
    """Whether its name may be that of a setting."""
    return not NOT_SETTINGS.fullmatch(setting.own_name)


def _number(word: str) -> float | None:
    try:
        return float(word) if re.fullmatch(r"[-+]?[\d.]+[eE][-+]?\d+", word) else None
    except ValueError:
        return None


def _toml(word: str) -> Any:
    with suppress(tomllib.TOMLDecodeError):
        value = tomllib.loads(f"value = {word}")["value"]
        return value if isinstance(value, bool | int | float | str) else None
    return None


def written(setting: Setting, value: Any) -> bytes:
    """A value as a file of that kind has it."""
    if setting.file.endswith(".py") or setting.kind != "in a file":
        return repr(value).encode()
    return json.dumps(value).encode()
