"""Inputs of reports, and a page as a reader of HTML sees it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from harness.documented_run.record import Curves, RunRecord
from harness.findings import CheckOutcome, Finding
from harness.report.html.inputs import read_inputs
from harness.report.html.page import page_of
from tests.baseline.conftest import make_record

ROOT = Path(__file__).parents[2]
BASELINES = ROOT / "baselines"
WHOLE = 1377

CHECKS = [
    CheckOutcome("load::split-sizes", "load", "split-sizes", "holds"),
    CheckOutcome("tokenize::truncation", "tokenize", "truncation", "fails"),
    CheckOutcome("schedule::no-warmup", "schedule", "no-warmup", "not applicable", "about another recipe"),
]
FINDING = Finding(
    "at most 512 tokens",
    "600 of them",
    "Give truncation=True.",
    None,
    None,
    "tokenize::truncation",
    "error",
    "Too long.",
)

VOID = {"meta", "link", "br", "input", "img", "hr"}


@dataclass
class Element:
    """An element with what is below it."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(each if isinstance(each, str) else each.text for each in self.children)

    def all(self, tag: str, **wanted: str) -> list[Element]:
        """The elements of this tag below it; ``class_`` is one of its classes."""
        found = []
        for each in self.children:
            if isinstance(each, Element):
                if each.tag == tag and all(each.has(name.rstrip("_"), value) for name, value in wanted.items()):
                    found.append(each)
                found += each.all(tag, **wanted)
        return found

    def has(self, name: str, value: str) -> bool:
        found = self.attributes.get(name, "")
        return value in found.split() if name == "class" else value == found


class Reader(HTMLParser):
    """Builds elements, and minds that what is opened is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]
        self.feed(html)
        self.close()
        assert self.open == [self.root], f"<{self.open[-1].tag}> is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        new = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(new)
        if tag not in VOID:
            self.open.append(new)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> in <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(html: str) -> Element:
    return Reader(html).root


def page(*paths: Path) -> Element:
    """The page of some inputs, beside the baselines of this project."""
    return read(page_of(read_inputs(paths), baselines=BASELINES, fallback=None))


def whole_run(seed: int = 42, **changes: Any) -> RunRecord:
    """A run of as many updates as the documents', with checks, whose curves depend on the seed alone."""
    random = np.random.default_rng(seed)
    curves = Curves(
        loss=(0.2 + 0.5 * np.exp(-np.arange(WHOLE) / 200) + 0.05 * random.normal(size=WHOLE)).tolist(),
        lr=(5e-5 * (1 - np.arange(WHOLE) / WHOLE)).tolist(),
        grad_norm=(1 + random.random(WHOLE)).tolist(),
    )
    given: dict[str, Any] = {
        "updates": WHOLE,
        "updates_planned": WHOLE,
        "curves": curves,
        "checks": CHECKS,
        "findings": [FINDING],
    }
    return make_record(seed, **(given | changes))


def written(path: Path, content: RunRecord | dict[str, Any]) -> Path:
    text = content.as_json() if isinstance(content, RunRecord) else json.dumps(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def checked(script: str, *, message: str = "Gradients of an earlier update.", line: int = 3) -> dict[str, Any]:
    """What ``harness check --json`` says of a script."""
    finding = {
        "check": "gradients::not-cleared",
        "severity": "error",
        "update": 2,
        "where": f"{script}:{line}",
        "message": message,
        "expected": "those of update 2",
        "observed": "those of update 1 too",
        "hint": "Call optimizer.zero_grad().",
    }
    return {
        "schema": 1,
        "script": script,
        "updates": 8,
        "findings": [finding],
        "ignored": [],
        "held": ["loss::not-finite"],
        "nothing_to_look_at": [{"check": "schedule::lr-zero", "why": "no learning rate scheduler"}],
        "not_looked_at": [],
        "notes": [],
        "shortened": False,
        "crashed": None,
        "seconds": {"before the first batch": 1.0, "in all": 2.0},
    }


RESUMED: dict[str, Any] = {
    "schema": 1,
    "script": "train.py",
    "kills": [
        {"at": 9, "resumed_from": None, "kind": "in an epoch", "lost": ["resume::began-anew"]},
        {"at": 11, "resumed_from": 11, "kind": "at an epoch's end", "lost": []},
    ],
    "findings": [
        {
            "check": "resume::began-anew",
            "severity": "error",
            "update": 1,
            "where": None,
            "message": "It begins again.",
            "expected": "to continue after update 9",
            "observed": "the first update",
            "hint": "Look for the checkpoint at the start.",
        }
    ],
    "updates": 12,
    "checkpoints": 3,
    "seconds": {"uninterrupted": 9.0, "in all": 55.0},
}

TAUGHT: dict[str, Any] = {
    "schema": 1,
    "script": "tune.py",
    "updates": 2,
    "rows": [
        {
            "update": 1,
            "spans": [
                {"text": "<s>Where?", "tokens": 2, "state": "not taught", "role": "user", "document": 1},
                {"text": "<b>There.</b>", "tokens": 3, "state": "taught", "role": "assistant", "document": 1},
                {"text": "Who?", "tokens": 1, "state": "not taught", "role": None, "document": 2},
                {"text": "<pad><pad>", "tokens": 2, "state": "padding", "role": None, "document": 2},
            ],
        }
    ],
    "rows_seen": 16,
    "tokens": 128,
    "padding": 28,
    "taught": 60,
    "without_label": 1,
    "filled": 0,
    "never_taught": ["</s>"],
    "notes": ["a note"],
    "crashed": None,
}

DESCRIBED: dict[str, Any] = {
    "schema": 2,
    "kind": "description",
    "script": "tune.py",
    "updates": 12,
    "lines": [
        {"section": "data", "text": "train: <60> rows", "facts": {"data.train.rows": 60}, "where": "tune.py:7"},
        {"section": "model", "text": "", "facts": {"model.Net.unchanged": []}, "where": None},
    ],
    "numbers": {"loss": [0.7, "NaN"]},
    "findings": [],
    "held": ["gradients::not-cleared"],
    "notes": ["a note"],
    "shortened": True,
    "crashed": None,
    "seconds": 2.0,
}

COMPARED: dict[str, Any] = {
    "schema": 1,
    "a": "train.py",
    "b": "train_new.py",
    "updates": 50,
    "differences": [
        {
            "cause": "compare::hyper-parameter",
            "rung": "options",
            "update": 7,
            "what": "lr",
            "values": ["5e-05", "3e-05"],
            "tensors": ["classifier.weight"],
            "size": 0.4,
            "rounding": 1e-7,
        }
    ],
    "equal": ["the forward pass"],
    "beside": {"torch": ["2.13.0", "2.12.0"]},
    "notes": [],
    "releases": {"4.57.6": "as the first", "5.0.0": "differs"},
}
