"""Ask tools about the programs of a set, and count what they find: what ``python -m scripts.others`` stands on.

Other tools are asked as their own pages say they are used (scripts/adapters.py), each in an environment of its own.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness import catalogue
from harness.errors import CannotTry
from harness.former_ids import formerly
from scripts import adapters
from scripts.expectations import Answer, Case, Kind, Verdict, cases_in, judged
from tests.server import ROOT, Done, Server, launched, run_python

HARNESS, PLAIN = "harness check", "python"
TOOLS = (HARNESS, *adapters.TOOLS)

SHARED = ("data", "hf")
"""Folders that scripts with a command of their own may share, and that are copied for each."""

OFFLINE = {
    **dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE"), "1"),
    "CUDA_VISIBLE_DEVICES": "",
    "WANDB_MODE": "disabled",
    "MPLBACKEND": "Agg",
}


@dataclass(frozen=True)
class Outcome:
    """One script, and what one tool said of it."""

    tool: str
    folder: str
    name: str
    kind: Kind
    undecidable: bool
    verdict: Verdict
    found: list[str]
    """Severity and check, without what another finding explains."""
    why: str | None
    """Why there is no answer."""
    seconds: float

    @property
    def answered(self) -> bool:
        return self.verdict not in ("broken", "could not be asked")

    @property
    def flagged(self) -> bool:
        return any(each.startswith("error ") for each in self.found)


class Asker:
    """Asks about the programs of a folder, in forks of a server, or in processes of their own where there is none.

    ``python`` is the interpreter of these; ``beside`` are the folders of the set that lie in each program's own one.
    """

    def __init__(
        self,
        scripts: Path,
        server: Server | None,
        limit: int,
        python: Path | str = sys.executable,
        beside: Sequence[str] = (),
    ) -> None:
        self.scripts, self.limit = scripts, limit
        self._server, self._python, self._beside = server, python, beside

    def ask(self, tool: str, case: Case) -> Answer:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            case, folder = self._laid_out(case, Path(name))
            try:
                for words in case.before:
                    run_python(folder, *words, environment={**OFFLINE, **case.environment}, limit=self.limit)
                return self._watched(tool, case, folder, Path(name, "report.json"))
            except subprocess.TimeoutExpired:
                return Answer(broken=f"it did not end within {self.limit} s", seconds=self.limit)

    def _laid_out(self, case: Case, place: Path) -> tuple[Case, Path]:
        """The case with its own folders' names put in, and the folder to run it in."""
        own = place / "tmp"
        own.mkdir()
        folder = place / "work" / (case.cwd or "")
        if case.cwd is None:
            folder.mkdir()
            for each in self._beside:
                shutil.copytree(self.scripts / each, folder / each, symlinks=True)
        else:
            for top in {case.cwd.parts[0], *SHARED}:
                if (self.scripts / top).is_dir():
                    shutil.copytree(self.scripts / top, place / "work" / top, symlinks=True)

        def filled(words: Iterable[str]) -> tuple[str, ...]:
            return tuple(word.replace("{tmp}", str(own)) for word in words)

        if case.edit:
            script = place / "edited" / Path(case.words[0]).name
            script.parent.mkdir()
            script.write_text(case.edited(), encoding="utf-8")
            case = replace(case, words=(str(script), *case.words[1:]), edit=())

        environment = dict(zip(case.environment, filled(case.environment.values()), strict=True))
        if own_path := environment.get("PYTHONPATH"):
            environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), own_path))
        before = [filled(words) for words in case.before]
        return replace(case, words=filled(case.words), environment=environment, before=before), folder

    def _watched(self, tool: str, case: Case, folder: Path, report: Path) -> Answer:
        if tool == HARNESS:
            done = self._done("harness", ("check", "--json", str(report), *case.words), case, folder)
        elif tool == PLAIN:
            done = self._done("scripts.others.plain", ("--json", str(report), *case.words), case, folder)
        else:
            options = ("--tool", tool, "--json", str(report), "--seconds", str(0.7 * self.limit))
            done = self._done(adapters.__name__, (*options, *case.words), case, folder)
        if done.status == -14:  # SIGALRM
            return Answer(broken=f"it did not end within {self.limit} s", seconds=done.seconds)
        if not report.exists():
            cannot = tool == HARNESS and done.status == 2
            why = _last_line(done)
            return Answer(not_asked=why if cannot else None, broken=None if cannot else why, seconds=done.seconds)
        said = json.loads(report.read_text(encoding="utf-8"))
        if tool == HARNESS:
            return Answer(said["findings"], broken=said["crashed"], seconds=done.seconds)
        return Answer(said["findings"] or (), said["not_asked"], said["broken"], done.seconds)

    def _done(self, program: str, arguments: Sequence[str], case: Case, folder: Path) -> Done:
        if self._server is None or case.processes > 1 or case.environment:
            environment = {**OFFLINE, **case.environment}
            return launched(
                folder,
                program,
                *arguments,
                processes=case.processes,
                environment=environment,
                limit=self.limit,
                python=self._python,
            )
        main = "harness.cli" if program == "harness" else program
        return self._server.run(folder, *arguments, program=main, limit=self.limit)


def _in_one_line(why: str | None) -> str | None:
    """The last line, without the names of temporary folders, which are others each time."""
    if not why:
        return None
    line = why.strip().splitlines()[-1]
    return re.sub(rf"{re.escape(tempfile.gettempdir())}/[^/\s]+/", "", line)


def _last_line(done: Done) -> str:
    lines = done.stderr.strip().splitlines() or done.stdout.strip().splitlines()
    return lines[-1] if lines else f"it ended with status {done.status} and said nothing"


@dataclass(frozen=True)
class Figures:
    """What one tool's outcomes come to: of programs that a run decides, but for ``undecidable``."""

    tool: str
    bugs: int
    named: int | None
    """Bugs that an error names; None for tools that the rules are not about."""
    pointed_at: int | None
    flagged: int
    """Bugs of which there is an error, whatever it says."""
    right: int
    false_errors: int
    warned: int
    """Right programs with a warning and no error."""
    undecidable: tuple[int, int]
    """Bugs that no tool can know from a run: those that were flagged, of how many."""
    not_asked: int
    broken: int
    seconds: float | None
    """Median of a program."""

    @classmethod
    def of(cls, tool: str, outcomes: Sequence[Outcome]) -> Figures:
        answered = [each for each in outcomes if each.answered]
        open_ones = [each for each in answered if each.undecidable and each.kind == "bug"]
        decided = [each for each in answered if each not in open_ones]
        bugs = [each for each in decided if each.kind == "bug"]
        count = Counter(each.verdict for each in decided)
        of_all = Counter(each.verdict for each in outcomes)
        ruled = tool == HARNESS
        return cls(
            tool=tool,
            bugs=len(bugs),
            named=count["exact"] if ruled else None,
            pointed_at=count["pointed at"] if ruled else None,
            flagged=sum(each.flagged for each in bugs),
            right=len(decided) - len(bugs),
            false_errors=count["false error"],
            warned=count["warned"],
            undecidable=(sum(each.flagged for each in open_ones), len(open_ones)),
            not_asked=of_all["could not be asked"],
            broken=of_all["broken"],
            seconds=statistics.median(each.seconds for each in answered) if answered else None,
        )


def by_tool(outcomes: Sequence[Outcome]) -> list[Figures]:
    """The figures of each tool, of the programs that run by themselves."""
    tools = [tool for tool in dict.fromkeys(each.tool for each in outcomes) if tool != PLAIN]
    return [Figures.of(tool, [each for each in outcomes if each.tool == tool]) for tool in tools]


def cases_of(folder: Path, scripts: Path, ids: Sequence[str]) -> list[tuple[str, Case]]:
    """The scripts to judge, each with the name of its folder.

    Raises:
        CannotTry: there is no manifest, or a wrong one; an id is unknown, or a script is not there.
    """
    below = [] if any(folder.glob("manifest.*")) else sorted({file.parent for file in folder.glob("*/manifest.*")})
    cases = [(each.resolve().name, case) for each in below or [folder] for case in cases_in(each)]
    known = [case.name for _, case in cases]
    for name in ids:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise CannotTry(f"no manifest in {folder} has {name}" + (f"; did you mean {near[0]}?" if near else ""))
    cases = [(title, case) for title, case in cases if not ids or case.name.removeprefix("right/") in ids]
    for _, case in cases:
        script = None if case.script is None else (scripts / (case.cwd or "") / case.script)
        if script is not None and not script.is_file():
            raise CannotTry(f"{case.name}: there is no {script}, which the manifest names")
        if case.edit:
            case.edited()
    return cases


def judge(asker: Asker, tool: str, cases: Sequence[tuple[str, Case]]) -> Iterator[Outcome]:
    """Ask a tool about every program."""
    names = {name: {name, *formerly(name)} for name in catalogue.checks()}
    for folder, case in cases:
        if tool not in (HARNESS, PLAIN) and case.kind == "open":
            continue  # which errors are true there is said of checks of the harness, and of no other's
        answer = asker.ask(tool, case)
        verdict = judged(case, answer, names if tool == HARNESS else None)
        roots = [each for each in answer.findings if each.get("explained_by") is None]
        found = [f"{each['severity']} {each['check']}" for each in roots]
        why = _in_one_line(answer.broken or answer.not_asked)
        yield Outcome(
            tool, folder, case.name, case.kind, case.undecidable, verdict, found, why, round(answer.seconds, 2)
        )
