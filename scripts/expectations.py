"""What a set of programs expects of a tool, and whether what the tool said is that.

docs/sets.md describes the format: a folder with ``manifest.toml``, whose table ``[set]`` says what the set is, and
whose tables ``[[program]]`` each name a version with a bug, a version without it, or both, and what a right message
says.

A list of commands in folders of others' repositories, ``manifest.json``, is read too: each has a ``command``, the
folder ``cwd`` that it runs in, and the checks whose errors are true there (``allowed``). Where there are some, one of
them must be found, unless they ``may`` be.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, RootModel, ValidationError, model_validator

from harness.errors import CannotTry
from harness.files import StrictModel, first_error, read_model

Finding = Mapping[str, Any]
"""A finding as in the report of ``harness check``; other tools' have a ``check``, a ``severity`` and a ``message``."""


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]

Task = Literal["check", "resume", "compare"]
"""The question that a program is about: is the loop right, does it survive a kill, where do two versions part."""


class Edit(StrictModel):
    """A piece of text that occurs once in a program, and what the version with the bug has there."""

    old: str
    new: str


class Program(BaseModel):
    """One ``[[program]]``; further keys are for readers."""

    model_config = ConfigDict(extra="allow")

    id: str
    bug: Path | None = None
    right: Path | None = None
    edit: list[Edit] = []
    wrong: str | None = None
    says: list[Pattern] = []
    near: list[Pattern] = []
    decidable: bool = True
    task: Task = "check"
    arguments: list[str] = []
    processes: int = 1
    needs: list[str] = []
    reading: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.bug is None and self.right is None:
            raise ValueError("it names neither a version with a bug (bug) nor one without (right)")
        faulty = self.bug is not None or (bool(self.edit) and self.task != "compare")
        if faulty and self.wrong is None:
            raise ValueError("wrong is missing: one sentence that says what is wrong in the version with the bug")
        if self.wrong is not None and not (faulty or self.edit):
            raise ValueError("wrong is about a version with a bug, and there is none (bug or edit)")
        if (self.wrong is None) == bool(self.says):
            raise ValueError("says, what a right message says, belongs to a version with a bug, and to each of them")
        if self.edit and (self.right is None or self.bug is not None):
            raise ValueError("edit makes the version with the bug of the right one: it needs right, and no bug")
        return self

    @property
    def files(self) -> list[Path]:
        """The version with the bug, then the one without it: those that there are."""
        return [file for file in (self.bug, self.right) if file is not None]

    def cases(self, folder: Path) -> Iterator[Case]:
        """The programs to judge."""
        if self.task != "check":
            return
        faulty = self.right if self.edit else self.bug
        for kind, file in (("bug", faulty), ("right", self.right)):
            if file is not None:
                yield Case(
                    f"right/{self.id}" if faulty is not None and kind == "right" else self.id,
                    "bug" if kind == "bug" else "right",
                    (str((folder / file).resolve()), *self.arguments),
                    processes=self.processes,
                    edit=tuple(self.edit) if kind == "bug" else (),
                    exact=self.says if kind == "bug" else (),
                    near=self.near if kind == "bug" else (),
                    undecidable=not self.decidable,
                )


class Set(StrictModel):
    """The table ``[set]``."""

    name: str
    version: str
    licence: str
    about: str
    expected: date
    """The day on which the expectations were written."""
    seen: str
    """What the authors of the tools that are scored knew of the programs when the expectations were written."""
    beside: tuple[str, ...] = ()
    """Folders of the set that lie in the working directory of each program."""
    digest: str | None = None
    """Of the programs, where they are not part of the set: what the expectations are about."""
    address: str | None = None
    commit: str | None = None
    published: str | None = None
    """What others have measured on it."""


class Manifest(StrictModel):
    """``manifest.toml``"""

    format: Literal[1]
    set: Set
    program: list[Program]

    @classmethod
    def read(cls, file: Path) -> Manifest:
        """Read and check a manifest.

        Raises:
            CannotTry: there is none, or it is no manifest; names the program, the key and what is wrong.
        """
        remedy = "docs/sets.md says what it holds"
        if not file.exists():
            raise CannotTry(f"there is no manifest {file}; {remedy}")
        try:
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise CannotTry(f"the manifest {file} cannot be read: {error}; {remedy}") from error
        except tomllib.TOMLDecodeError as error:
            raise CannotTry(f"the manifest {file} is no TOML: {error}; {remedy}") from error
        try:
            manifest = cls.model_validate(tables)
        except ValidationError as error:

            def name(found: re.Match[str]) -> str:
                return str(tables["program"][int(found[1])].get("id", found[0]))

            said = re.sub(r"program\.(\d+)", name, first_error(error), count=1)
            raise CannotTry(f"the manifest {file}: {said}; {remedy}") from error
        must_be_once(file, [each.id for each in manifest.program])
        return manifest

    def cases(self, folder: Path) -> Iterator[Case]:
        for program in self.program:
            yield from program.cases(folder)


class Command(BaseModel):
    """A command in a folder of somebody's repository."""

    id: str
    cwd: Path
    command: list[str]
    allowed: list[str]
    may: bool = False
    env: dict[str, str] = {}
    before: list[list[str]] = []
    tried: bool = True

    def cases(self) -> Iterator[Case]:
        """The command, where it is tried."""
        if self.tried:
            kind: Kind = "right" if not self.allowed else "open" if self.may else "bug"
            rules = [rf"(^| ){re.escape(check)}[ :]" for check in self.allowed]
            yield Case(
                self.id, kind, tuple(self.command), self.cwd, self.env, self.before, exact=rules, others_are_false=True
            )


class Commands(RootModel[list[Command]]):
    """``manifest.json``"""


def must_be_once(file: Path, ids: Sequence[str]) -> None:
    """
    Raises:
        CannotTry: an id is there twice.
    """
    if twice := {each for each in ids if ids.count(each) > 1}:
        raise CannotTry(f"the manifest {file}: the id {min(twice)} is there twice")


def cases_in(folder: Path) -> list[Case]:
    """What is to be judged of the set in a folder.

    Raises:
        CannotTry: there is no manifest, or it is wrong.
    """
    if (folder / "manifest.json").exists() and not (folder / "manifest.toml").exists():
        file = folder / "manifest.json"
        commands = read_model(file, Commands, "the manifest", "scripts/expectations.py says what it holds").root
        must_be_once(file, [each.id for each in commands])
        return [case for each in commands for case in each.cases()]
    return list(Manifest.read(folder / "manifest.toml").cases(folder))


Kind = Literal["bug", "right", "open"]
"""``open``: right, and errors of some checks are true there."""


@dataclass(frozen=True)
class Case:
    """One program to judge."""

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
    edit: Sequence[Edit] = ()
    """What is made of the script's text before it is run."""
    exact: Sequence[str] = ()
    """Regular expressions; an error that fits one names the bug."""
    near: Sequence[str] = ()
    """Regular expressions; a finding that fits one points at the bug, and so does a warning that names it."""
    others_are_false: bool = False
    """Whether an error that fits no rule is a false one."""
    undecidable: bool = False
    """Whether the manifest says that no tool can know it from a run."""

    @property
    def script(self) -> str | None:
        """The file that is run, or edited and run; None for a module."""
        return None if self.words[0] == "-m" else self.words[0]

    def edited(self) -> str:
        """The script's text with the edits made, one after another.

        Raises:
            CannotTry: a passage is not there once.
        """
        assert self.script is not None
        text = Path(self.script).read_text(encoding="utf-8")
        for each in self.edit:
            if text.count(each.old) != 1:
                raise CannotTry(
                    f"{self.name}: {self.script} has the passage {each.old!r} {text.count(each.old)} times; "
                    "an edit needs one that is there once"
                )
            text = text.replace(each.old, each.new)
        return text


Verdict = Literal[
    "exact", "pointed at", "flagged", "missed", "false error", "warned", "quiet", "could not be asked", "broken"
]


@dataclass(frozen=True)
class Answer:
    """What a tool said of a program."""

    findings: Sequence[Finding] = ()
    not_asked: str | None = None
    """Why it could not be asked."""
    broken: str | None = None
    """How it, or the program under it, ended without an answer."""
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
    pointing = (*case.exact, *case.near)
    return "pointed at" if any(_fits(finding, pointing, names) for finding in answer.findings) else "missed"


def text_of(finding: Finding, names: Mapping[str, set[str]] | None = None) -> str:
    """What rules are held against: the check by all its names, then what the finding says."""
    called = sorted({finding["check"]} | (names or {}).get(finding["check"], set()))
    said = " ".join(str(finding.get(key) or "") for key in ("message", "expected", "observed", "hint"))
    return f"{' '.join(called)}: {said}"


def _fits(finding: Finding, rules: Sequence[str], names: Mapping[str, set[str]]) -> bool:
    text = text_of(finding, names)
    return any(re.search(rule, text, re.IGNORECASE | re.DOTALL) for rule in rules)
