"""The JSON schemas of what the commands write, made from the types that write it: docs/schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter

from harness.baseline.same_training import SameTrainingReport
from harness.baseline.trainings import TrainingsReport
from harness.catalogue import Explained
from harness.compare.differences import CompareReport
from harness.describe.description import Description
from harness.documented_run.matrix import Matrix
from harness.documented_run.record import DocumentsRecord, RunRecord
from harness.findings import SCHEMA
from harness.report.baseline import BaselinesShown, Compared
from harness.report.documents import CitationsShown
from harness.report.terminal import ClaimsShown
from harness.resume.run import ResumeReport
from harness.vary.run import VaryReport
from harness.vary.settings.run import SettingsReport
from harness.watch.script import CheckReport
from harness.watch.scripts import ScriptsReport
from harness.watch.teaching import TaughtReport

LEFT_OUT = {
    "Provenance": ("resumed_after",),
    "Row": ("loop", "documented"),
    "Cell": ("value",),
}
"""Keys that are written only where there is something to say."""

WRITTEN = {
    "CheckReport": "check",
    "ScriptsReport": "scripts",
    "ResumeReport": "resume",
    "CompareReport": "compare",
    "VaryReport": "vary",
    "SettingsReport": "settings",
    "TaughtReport": "tokens",
    "Description": "description",
    "TrainingsReport": "trainings",
    "SameTrainingReport": "same-training",
}
"""What the command puts before a report's fields: its schema, and this kind."""

ID = {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*::[a-z0-9]+(-[a-z0-9]+)*$"}
"""The form of an id. ``harness explain --json`` says which there are: a new check is no change of a schema."""

NOT_FINITE = {"enum": ["NaN", "Infinity", "-Infinity"]}
"""What stands for a number that JSON has none for."""


@dataclass(frozen=True)
class Schema:
    """Of what one command writes."""

    command: str
    type: Any
    ids: bool = False
    """Whether its findings are named by ids: those of checks, losses, causes, relations or settings."""


SCHEMAS = {
    "check": Schema("harness check SCRIPT", CheckReport, ids=True),
    "check-scripts": Schema("harness check (the scripts of pyproject.toml)", ScriptsReport, ids=True),
    "explain": Schema("harness explain", list[Explained], ids=True),
    "tokens": Schema("harness tokens", TaughtReport),
    "describe": Schema("harness describe", Description, ids=True),
    "baseline-trainings": Schema(
        "harness baseline compare (the trainings of pyproject.toml)", TrainingsReport, ids=True
    ),
    "resume": Schema("harness resume", ResumeReport, ids=True),
    "compare": Schema("harness compare", CompareReport, ids=True),
    "vary": Schema("harness vary", VaryReport, ids=True),
    "vary-settings": Schema("harness vary --settings", SettingsReport, ids=True),
    "same-training": Schema("harness compare NAME, or --processes", SameTrainingReport),
    "run": Schema("harness run, run.json", RunRecord),
    "documents": Schema("harness documents, documents.json", DocumentsRecord),
    "matrix": Schema("harness matrix", Matrix),
    "claims": Schema("harness claims", ClaimsShown),
    "citations": Schema("harness claims --documents", CitationsShown),
    "baseline-compare": Schema("harness baseline compare", Compared),
    "baseline-show": Schema("harness baseline show", BaselinesShown),
}


def text_of(name: str) -> str:
    """A schema as its file has it."""
    return json.dumps(schema_of(SCHEMAS[name]), indent=1) + "\n"


def schema_of(each: Schema) -> dict[str, Any]:
    """What every key is. Keys may be added by later versions, so others are allowed."""
    found = TypeAdapter(each.type).json_schema()
    strings = isinstance(each.type, type) and issubclass(each.type, BaseModel | Description)
    for schema in _objects(found):
        _complete(schema, each.ids, strings)
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": each.command}
    return about | {key: value for key, value in found.items() if key != "title"}


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """All objects of a schema that list their keys, the innermost first."""
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _objects(each)
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        yield schema


def _complete(schema: dict[str, Any], ids: bool, strings: bool) -> None:
    """Say that all keys are written; a report of :mod:`dataclasses` gets its schema's number when it is."""
    name, properties = schema["title"], schema["properties"]
    schema.pop("additionalProperties", None)
    if name == "Finding":
        properties.pop("details", None)  # which reports are without
    if name == "Finding" and not ids:  # of a stage, whose checks explain none
        del properties["explained_by"]
    if name in WRITTEN:
        told = {"schema": {"const": SCHEMA}, "kind": {"const": WRITTEN[name]}}
        properties = schema["properties"] = {**told, **properties}
    for key, value in properties.items():
        properties[key] = _value(value, strings)
    for key in _keys_of_ids(name) if ids else ():
        properties[key] = properties[key] | {"items": ID} if properties[key].get("type") == "array" else ID
    schema["required"] = [key for key in properties if key not in LEFT_OUT.get(name, ())]


def _keys_of_ids(name: str) -> Sequence[str]:
    of = {
        "CheckReport": ("held", "ignored"),
        "Finding": ("check",),
        "NotLookedAt": ("check",),
        "NotThere": ("checks",),
        "VaryReport": ("ignored",),
        "RelationReport": ("relation",),
        "Explained": ("id",),
    }
    of["Difference"] = ("cause",)
    return of.get(name, ())


def _value(schema: dict[str, Any], strings: bool) -> dict[str, Any]:
    """A value without what only the making of an object needs; with ``strings`` a number may be one of those."""
    kept = {key: value for key, value in schema.items() if key not in ("title", "default", "gt")}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _value(kept[key], strings)
    if "anyOf" in kept:
        kept["anyOf"] = [_value(each, strings) for each in kept["anyOf"]]
    if strings and kept.get("type") == "number":
        return {"anyOf": [kept, NOT_FINITE]}
    return kept


def index() -> str:
    """The page that lists them."""
    lines = [
        "# JSON schemas of what the commands write",
        "",
        "Made from the types that write it (`python -m scripts.check_pages`); tests hold the commands' output to them.",
        "Keys may be added without a new number in `schema`; one that goes, or means something else, raises it. In",
        'what is kept as a file, numbers that are not finite are the strings "NaN", "Infinity" and "-Infinity".',
        "",
        "| schema | what writes it |",
        "| --- | --- |",
        *(f"| [{name}]({name}.schema.json) | {each.command} |" for name, each in SCHEMAS.items()),
    ]
    return "\n".join(lines) + "\n"
