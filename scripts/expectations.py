"""What a manifest expects of scripts, and whether what a tool said is that.

``manifest.json`` is a list. Each entry has an ``id`` and is one of three kinds; further keys are for its readers:

- a bug and its repair: ``bug`` and ``fixed`` are files; ``exact`` and ``near`` are rules. An error that fits one of
  ``exact`` names the bug; any finding that fits one of ``near`` points at it;
- one script, ``file``: its ``kind`` is ``bug`` or ``clean``, and any error counts;
- a ``command`` in a folder ``cwd``: ``allowed`` are the checks whose errors are true there. Where there are some, one
  of them must be found, unless they ``may`` be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, RootModel, Tag

from harness.errors import CannotTry
from harness.files import StrictModel, read_model
from harness.findings import Severity

Finding = Mapping[str, Any]
"""A finding as in the report of ``harness check``; other tools' have a ``check``, a ``severity`` and a ``message``."""


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]


class _Rule(StrictModel):
    check: Pattern = ".*"
    severity: Severity | None = None
    says: Pattern | None = None
    line: tuple[int, int] | None = None


Rule = Annotated[_Rule, BeforeValidator(lambda rule: {"check": rule} if isinstance(rule, str) else rule)]
"""A check's id, or what all must be true of a finding: ``check`` and ``says`` are regular expressions."""


class Pair(BaseModel):
    id: str
    bug: Path
    fixed: Path
    exact: list[Rule]
    near: list[Rule]
    decidable: Literal["yes", "arguable", "no"] = "yes"

    def cases(self, folder: Path) -> Iterator[Case]:
        marked = self.decidable == "no"
        bug, fixed = str((folder / self.bug).resolve()), str((folder / self.fixed).resolve())
        yield Case(self.id, "bug", (bug,), exact=self.exact, near=self.near, marked=marked)
        yield Case(f"fixed/{self.id}", "right", (fixed,), marked=marked)


class Single(BaseModel):
    id: str
    file: Path
    kind: Literal["bug", "clean"]
    nproc: int = 1
    hard: bool = False
    contested: bool = False

    def cases(self, folder: Path) -> Iterator[Case]:
        kind: Kind = "bug" if self.kind == "bug" else "right"
        words = (str((folder / self.file).resolve()),)
        yield Case(self.id, kind, words, processes=self.nproc, marked=self.hard or self.contested)


class Command(BaseModel):
    id: str
    cwd: Path
    command: list[str]
    allowed: list[str]
    may: bool = False
    env: dict[str, str] = {}
    before: list[list[str]] = []
    tried: bool = True

    def cases(self, folder: Path) -> Iterator[Case]:
        if self.tried:
            kind: Kind = "right" if not self.allowed else "open" if self.may else "bug"
            rules = [_Rule(check=re.escape(check), severity="error") for check in self.allowed]
            yield Case(
                self.id, kind, tuple(self.command), self.cwd, self.env, self.before, exact=rules, others_are_false=True
            )


def _kind_of(entry: Any) -> str | None:
    keys = {"fixed": "pair", "file": "script", "command": "command"}
    return next((kind for key, kind in keys.items() if isinstance(entry, Mapping) and key in entry), None)


Entry = Annotated[
    Annotated[Pair, Tag("pair")] | Annotated[Single, Tag("script")] | Annotated[Command, Tag("command")],
    Discriminator(
        _kind_of,
        custom_error_type="entry",
        custom_error_message="an entry has bug and fixed, or a file, or a command",
    ),
]


class Manifest(RootModel[list[Entry]]):
    """``manifest.json``"""

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """
        Raises:
            CannotTry: there is none, or it is no manifest; names the entry, the key and what is wrong.
        """
        path = folder / "manifest.json"
        manifest = read_model(path, cls, "the manifest", "scripts/expectations.py says what it holds")
        ids = [entry.id for entry in manifest.root]
        if twice := {each for each in ids if ids.count(each) > 1}:
            raise CannotTry(f"the manifest {path}: the id {min(twice)} is there twice")
        return manifest


Kind = Literal["bug", "right", "open"]
"""``open``: right, and errors of some checks are true there."""


@dataclass(frozen=True)
class Case:
    """One script to judge."""

    name: str
    kind: Kind
    words: tuple[str, ...]
    """The script and its arguments; ``{tmp}`` is a folder of its own."""
    cwd: Path | None = None
    """The folder that it runs in, of those that are copied for it; None for an empty one."""
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Sequence[Sequence[str]] = ()
    """What is run before it, unwatched."""
    processes: int = 1
    exact: Sequence[_Rule] = ()
    near: Sequence[_Rule] = ()
    others_are_false: bool = False
    """Whether an error that fits no rule is a false one."""
    marked: bool = False
    """Whether the manifest says that it is hard, contested or not to be decided."""

    @property
    def script(self) -> str | None:
        """The file that is run; None for a module."""
        return None if self.words[0] == "-m" else self.words[0]


Verdict = Literal[
    "exact", "pointed at", "flagged", "missed", "false error", "warned", "quiet", "could not be asked", "broken"
]


@dataclass(frozen=True)
class Answer:
    """What a tool said of a script."""

    findings: Sequence[Finding] = ()
    not_asked: str | None = None
    """Why it could not be asked."""
    broken: str | None = None
    """How it, or the script under it, ended without an answer."""
    seconds: float = 0.0

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding["severity"] == "error"]


def judged(case: Case, answer: Answer, names: Mapping[str, set[str]] | None) -> Verdict:
    """What the answer is worth; ``names`` has all that each check was ever called, None for tools with other checks."""
    if answer.broken is not None:
        return "broken"
    if answer.not_asked is not None:
        return "could not be asked"
    if case.kind != "bug":
        true = names is not None and all(_fits(finding, case.exact, names) for finding in answer.errors)
        false = answer.errors and not (case.kind == "open" and true)
        return "false error" if false else "warned" if answer.findings else "quiet"
    if names is None or not (case.exact or case.near):
        return "flagged" if answer.errors else "missed"
    named = [finding for finding in answer.errors if _fits(finding, case.exact, names)]
    if case.others_are_false and len(named) < len(answer.errors):
        return "false error"
    if named:
        return "exact"
    return "pointed at" if any(_fits(finding, case.near, names) for finding in answer.findings) else "missed"


def _fits(finding: Finding, rules: Sequence[_Rule], names: Mapping[str, set[str]]) -> bool:
    return any(_fits_rule(finding, rule, names) for rule in rules)


def _fits_rule(finding: Finding, rule: _Rule, names: Mapping[str, set[str]]) -> bool:
    called = {finding["check"]} | names.get(finding["check"], set())
    if not any(re.fullmatch(rule.check, name) for name in called):
        return False
    if rule.severity is not None and finding["severity"] != rule.severity:
        return False
    words = " ".join(str(finding.get(key) or "") for key in ("message", "expected", "observed", "hint"))
    if rule.says is not None and not re.search(rule.says, words, re.IGNORECASE | re.DOTALL):
        return False
    if rule.line is None:
        return True
    line = re.search(r":(\d+)$", str(finding.get("where") or ""))
    return line is not None and rule.line[0] <= int(line[1]) <= rule.line[1]
