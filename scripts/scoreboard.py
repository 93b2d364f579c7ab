"""Count what ``harness check``, and other tools, find in scripts whose bugs are known.

    python -m scripts.scoreboard FOLDER [ID]... [--tool NAME]... [--rivals DIR] [--json FILE] [--markdown FILE]

FOLDER is a set of programs as docs/sets.md describes it, or has folders that are. Other tools are asked where they are
installed beside the harness (scripts/adapters.py), or each in an environment of its own that is made in ``--rivals``.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import SimpleQueue

import click

from harness import catalogue
from harness.cli.options import json_option
from harness.cli.output import check_file, echo
from harness.errors import CannotTry
from harness.files import write_atomically
from harness.findings import shortened
from harness.report.matrix import markdown_table, write_markdown
from harness.report.terminal import table
from scripts import adapters
from scripts.expectations import Answer, Case, Kind, Verdict, cases_in, judged
from tests.server import ROOT, Done, Server, launched, run_python

MARKS = ("<!-- scoreboard:begin -->", "<!-- scoreboard:end -->")

HARNESS = "harness check"
TOOLS = (HARNESS, *adapters.TOOLS)

SHARED = ("data", "hf")
"""Folders that scripts with a command of their own may share, and that are copied for each."""

OFFLINE = {
    **dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE"), "1"),
    "CUDA_VISIBLE_DEVICES": "",
    "WANDB_MODE": "disabled",
    "MPLBACKEND": "Agg",
}

CAPTION = (
    "A bug is flagged where the tool reports an error: a finding of its highest severity. Whether the error names the "
    "bug is decided for `harness check` alone, where the manifest has rules: exact, an error that names it; pointed "
    "at, a finding that leads to it; missed, neither. For other tools, and where there are no rules, missed means not "
    "flagged, and a flagged bug may have been flagged for another reason. A false error is an error about a right "
    "script; warned are right scripts with warnings only. A tool could not be asked where the loop's first update "
    "does not give what it takes; these scripts, and those that ended without an answer, are in no other column. "
    "Seconds are medians of a script, without the importing of torch and transformers where a process that has "
    "imported them was forked."
)


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
    """Severity and check."""
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
    """Asks tools about the scripts of one folder, in the forks of some servers of each tool's environment.

    ``pythons`` are the interpreters by tool; ``beside`` are what of the folder lies in each program's own one.
    """

    def __init__(
        self,
        scripts: Path,
        servers: Mapping[str, Sequence[Server]],
        limit: int,
        pythons: Mapping[str, Path | str] | None = None,
        beside: Sequence[str] = (),
    ) -> None:
        self.scripts, self.limit = scripts, limit
        self._pythons, self._beside = pythons or {}, beside
        self._servers: dict[str, SimpleQueue[Server]] = {}
        for tool, those in servers.items():
            queue: SimpleQueue[Server] = SimpleQueue()
            for each in those:
                queue.put(each)
            self._servers[tool] = queue

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

        environment = dict(zip(case.environment, filled(case.environment.values()), strict=True))
        if own_path := environment.get("PYTHONPATH"):
            environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), own_path))
        before = [filled(words) for words in case.before]
        return replace(case, words=filled(case.words), environment=environment, before=before), folder

    def _watched(self, tool: str, case: Case, folder: Path, report: Path) -> Answer:
        if tool == HARNESS:
            done = self._done("harness", ("check", "--json", str(report), *case.words), case, folder, tool)
        else:
            options = ("--tool", tool, "--json", str(report), "--seconds", str(0.7 * self.limit))
            done = self._done(adapters.__name__, (*options, *case.words), case, folder, tool)
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

    def _done(self, program: str, arguments: Sequence[str], case: Case, folder: Path, tool: str) -> Done:
        if tool not in self._servers or case.processes > 1 or case.environment:
            environment, python = {**OFFLINE, **case.environment}, self._pythons.get(tool, sys.executable)
            how = {"processes": case.processes, "limit": self.limit}
            return launched(folder, program, *arguments, environment=environment, python=python, **how)
        forking = self._servers[tool].get()
        try:
            main = "harness.cli" if program == "harness" else program
            return forking.run(folder, *arguments, program=main, limit=self.limit)
        finally:
            self._servers[tool].put(forking)


def _last_line(done: Done) -> str:
    lines = done.stderr.strip().splitlines() or done.stdout.strip().splitlines()
    return lines[-1] if lines else f"it ended with status {done.status} and said nothing"


@dataclass(frozen=True)
class Figures:
    """What one tool's outcomes come to."""

    tool: str
    bugs: int
    exact: int | None
    """None where no rule says what names a bug."""
    pointed_at: int | None
    flagged: int
    missed: int
    right: int
    false_errors: int
    warned: int
    could_not_be_asked: int
    broken: int
    median_seconds: float | None

    @classmethod
    def of(cls, tool: str, outcomes: Sequence[Outcome]) -> Figures:
        answered = [each for each in outcomes if each.answered]
        bugs = [each for each in answered if each.kind == "bug"]
        count = Counter(each.verdict for each in outcomes)
        ruled = tool == HARNESS and any(each.verdict in ("exact", "pointed at") for each in bugs)
        return cls(
            tool=tool,
            bugs=len(bugs),
            exact=count["exact"] if ruled else None,
            pointed_at=count["pointed at"] if ruled else None,
            flagged=sum(each.flagged for each in bugs),
            missed=count["missed"],
            right=len(answered) - len(bugs),
            false_errors=count["false error"],
            warned=count["warned"],
            could_not_be_asked=count["could not be asked"],
            broken=count["broken"],
            median_seconds=statistics.median(each.seconds for each in answered) if answered else None,
        )

    def cells(self) -> tuple[str, ...]:
        shown = {**asdict(self), "median_seconds": self.median_seconds and f"{self.median_seconds:.1f}"}
        return tuple("-" if each is None else str(each) for each in shown.values())


HEAD = (
    *("tool", "bugs", "exact", "pointed at", "flagged", "missed", "right scripts", "false errors", "warned"),
    *("could not be asked", "broken", "seconds"),
)


def boards(outcomes: Sequence[Outcome]) -> dict[str, list[Figures]]:
    """The figures by what they are of: each folder's scripts, and those that its manifest does not mark."""
    found = {}
    for folder in dict.fromkeys(each.folder for each in outcomes):
        mine = [each for each in outcomes if each.folder == folder]
        found[folder] = _by_tool(mine)
        if any(each.undecidable for each in mine):
            title = f"{folder}, without what no tool can know from a run"
            found[title] = _by_tool([each for each in mine if not each.undecidable])
    return found


def _by_tool(outcomes: Sequence[Outcome]) -> list[Figures]:
    tools = dict.fromkeys(each.tool for each in outcomes)
    return [Figures.of(tool, [each for each in outcomes if each.tool == tool]) for tool in tools]


def board_lines(found: Mapping[str, Sequence[Figures]], absent: Sequence[str]) -> Iterator[str]:
    """For a terminal."""
    for title, figures in found.items():
        yield f"{title}:"
        yield from (f"  {line}" for line in table([HEAD, *(each.cells() for each in figures)]))
    yield from (f"{tool} is not installed" for tool in absent)


def board_markdown(found: Mapping[str, Sequence[Figures]], absent: Sequence[str]) -> Iterator[str]:
    for title, figures in found.items():
        yield f"**{title}**"
        yield ""
        yield from markdown_table(HEAD, [each.cells() for each in figures])
        yield ""
    yield CAPTION
    if absent:
        yield f"Not installed: {', '.join(absent)}."
    versions = {tool: _version(tool) for tool in dict.fromkeys(each.tool for rows in found.values() for each in rows)}
    yield f"Versions: {', '.join(f'{tool} {version}' for tool, version in versions.items())}."


def _version(tool: str) -> str:
    name = "full-training-harness" if tool == HARNESS else tool
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


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
            raise CannotTry(f"{case.name}: there is no {script}; --scripts names the folder that commands run in")
    return cases


def judge(asker: Asker, tools: Sequence[str], cases: Sequence[tuple[str, Case]], jobs: int) -> Iterator[Outcome]:
    """Ask every tool about every script, ``jobs`` at once."""
    names = {name: {name, *check.formerly} for name, check in catalogue.checks().items()}

    def outcome(job: tuple[str, str, Case]) -> Outcome:
        tool, folder, case = job
        answer = asker.ask(tool, case)
        verdict = judged(case, answer, names if tool == HARNESS else None)
        found = [f"{each['severity']} {each['check']}" for each in answer.findings]
        why = answer.broken or answer.not_asked
        return Outcome(tool, folder, case.name, case.kind, case.undecidable, verdict, found, why, round(answer.seconds, 2))

    # Which errors are true in an open case is said of checks of the harness, and of no other's.
    asked = [(tool, *each) for tool in tools for each in cases if tool == HARNESS or each[1].kind != "open"]
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(outcome, asked)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--tool", "tools", multiple=True, type=click.Choice(list(MODULES)), help="Ask this one. [default: all]")
@json_option("Also write each outcome and the figures to this file.")
@click.option(
    "--markdown",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the figures as Markdown: between the marks of a file that has them, or as a file.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Scripts at once.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="End a script that takes longer.",
)
@click.option(
    "--scripts",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the folders are that a manifest's commands run in. [default: FOLDER]",
)
@click.option("--fork/--no-fork", default=True, show_default=True, help="Fork from a process that has imported torch.")
def main(
    folder: Path,
    ids: tuple[str, ...],
    tools: tuple[str, ...],
    json_file: Path | None,
    markdown: Path | None,
    jobs: int,
    limit: int,
    scripts: Path | None,
    fork: bool,
) -> None:
    """Count what harness check, and other tools, find in the scripts of FOLDER/manifest.json, or in those named."""
    try:
        for file in filter(None, (json_file, markdown)):
            check_file(file)
        cases = cases_of(folder, scripts or folder, ids)
    except CannotTry as error:
        raise click.UsageError(str(error)) from error
    wanted = tools or tuple(MODULES)
    present = [tool for tool in wanted if importlib.util.find_spec(MODULES[tool])]
    absent = [tool for tool in wanted if tool not in present]
    outcomes = []
    with ExitStack() as stack:
        servers = [Server(OFFLINE) for _ in range(jobs if fork and set(present) != {PREFLIGHT} else 0)]
        for each in servers:
            stack.callback(each.close)
        for outcome in judge(Asker(scripts or folder, servers, limit), present, cases, jobs):
            outcomes.append(outcome)
            said = ", ".join(outcome.found) or (outcome.why or "nothing found").strip().splitlines()[-1]
            click.echo(f"{outcome.tool}: {outcome.verdict}: {outcome.name}: {shortened(said, 200)}", err=True)
    found = boards(outcomes)
    echo(board_lines(found, absent))
    if json_file is not None:
        figures = {title: [asdict(each) for each in rows] for title, rows in found.items()}
        whole = {"schema": 1, "figures": figures, "absent": absent, "outcomes": [asdict(each) for each in outcomes]}
        write_atomically(json_file, json.dumps(whole, indent=1) + "\n")
    if markdown is not None:
        write_markdown(markdown, board_markdown(found, absent), MARKS)


if __name__ == "__main__":
    main()
