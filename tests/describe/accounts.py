"""Accounts: of one run the lines of its page, the checks that looked, and why the others did not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.describe.description import Line
from harness.describe.page import SECTIONS, lines_of
from harness.findings import NOT_SEEN
from harness.settings import DEFAULTS
from harness.watch.script import watch_script

ACCOUNT = "account.json"


@dataclass(frozen=True)
class Judged:
    """A kind of line of the page, and the checks that judge it."""

    section: str
    key: str
    """Of one of its facts."""
    checks: tuple[str, ...]
    value: Callable[[Any], bool] = lambda value: True

    def is_in(self, line: Line) -> bool:
        keyed = ((key.rpartition(".")[2], value) for key, value in line.facts.items())
        return line.section == self.section and any(key == self.key and self.value(value) for key, value in keyed)


NUMBERS = ("metrics::mean-of-batches", "metrics::of-other-rows", "metrics::other-than-named")
"""Any of them: a number is judged by what its name says that it is."""

KINDS = [
    Judged("data", "trained_on_too", ("rows::evaluated-on-training-rows",)),
    Judged("evaluation", "modes", ("mode::evaluation-in-train-mode",)),
    Judged("evaluation", "graph", ("mode::evaluation-with-graph",)),
    Judged("model", "unchanged", ("parameters::unchanged",), bool),
    Judged("model", "mode", ("mode::training-in-eval-mode",)),
    Judged("optimizer", "in_none", ("optimizer::missing-parameters",)),
    Judged("update", "stale", ("gradients::not-cleared",)),
    Judged("schedule", "times", ("schedule::wrong-length", "schedule::never-stepped")),
    Judged("schedule", "course", ("schedule::lr-zero",)),
    Judged("metric", "by_bits", NUMBERS, lambda by: str(by).startswith(("share", "mean"))),
    Judged("update", "without_gradient", ("gradients::cut-off",), bool),
    Judged("update", "empty", ("gradients::lost",)),
    Judged("loss", "not_finite", ("loss::not-finite",)),
    Judged("loss", "share_of_the_mean", ("loss::constant",)),
]


EXPLAINED: Mapping[tuple[str, str], str] = {
    (
        "mode::training-in-eval-mode",
        f"no module of dropout or normalisation{NOT_SEEN}",
    ): "the page has the mode of models in which it changes nothing, too",
    (
        "parameters::unchanged",
        f"no update with a gradient and a learning rate{NOT_SEEN}",
    ): "nothing can change without a gradient",
    (
        "gradients::not-cleared",
        f"no second update with gradients{NOT_SEEN}",
    ): "the page counts updates without gradients, too",
    (
        "optimizer::missing-parameters",
        f"no model whose parameters got gradients{NOT_SEEN}",
    ): "the page counts steps without gradients, too",
    (
        "gradients::lost",
        f"no optimizer step after a backward pass{NOT_SEEN}",
    ): "a backward pass that reaches no parameter is none",
    (
        "loss::constant",
        f"no losses of several batches{NOT_SEEN}",
    ): "a whole data set in each update is one batch",
}
"""Check and reason to why the page does not contradict it."""


@dataclass(frozen=True)
class Account:
    lines: list[Line]
    looked: Mapping[str, str]
    """The checks that did, with what at."""
    lacking: Mapping[str, str]
    """The others, each with its reason."""

    @classmethod
    def read(cls, file: Path) -> Account:
        found = json.loads(file.read_text(encoding="utf-8"))
        lines = [Line(section, text, facts) for section, text, facts in found["lines"]]
        return cls(lines, found["looked"], found["lacking"])

    def not_looked_at(self, kinds: Iterable[Judged] = KINDS) -> Iterator[tuple[Judged, str, str]]:
        """The kinds that its page has a line of and that no check has looked at, with each check and its reason."""
        for kind in kinds:
            if any(map(kind.is_in, self.lines)) and not {*kind.checks} & {*self.looked}:
                yield from ((kind, check, self.lacking.get(check, "")) for check in kind.checks)

    def contradicted(self) -> dict[str, str]:
        """The checks that say that what the page shows was not seen, and not that it would not show the fault."""
        unseen = {check: why for _, check, why in self.not_looked_at() if not why or why.endswith(NOT_SEEN)}
        return {
            check: why
            for check, why in unseen.items()
            if "that would show it" not in why and (check, why) not in EXPLAINED
        }


def main(arguments: list[str], prog_name: str = "") -> None:
    """Watch a script as ``harness describe`` does, and write its account into the working directory."""
    script, *words = arguments
    _, session = watch_script(script, words, DEFAULTS, sections=SECTIONS, every_update=True)
    found = {
        "lines": [(line.section, line.text, line.facts) for line in lines_of(session)],
        "looked": dict(session.looked),
        "lacking": dict(session.lacking),
    }
    Path(ACCOUNT).write_text(json.dumps(found, default=str), encoding="utf-8")
