"""Kill the command line at random moments and look at what it leaves: ``python -m scripts.kills --kills 100``.

Each start is a child of this process, forked after the imports, which would take longer than all else. It gets a signal
at a moment between its beginning and its end, drawn by ``--seed``; then it must be gone with all that it started,
every file must be whole, what it said that it keeps must be there, and the same command must go on to the bits of a run
that nobody killed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
ROWS = {"train": 60, "validation": 20, "test": 10}
PATIENCE = 400.0
"""Seconds in which a command must end after a signal, and go on to its end."""

DOCUMENT = """# Numbers
```py
import time
numbers = [1, 2, 3]
```
```py
time.sleep(0.5)
sum(numbers)
```
```py
print(max(numbers))
```
"""


SCRIPT = """import os
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first = 0
if os.path.exists("checkpoint.pt"):
    kept = torch.load("checkpoint.pt")
    model.load_state_dict(kept["model"])
    first = kept["batch"]
for batch in range(first, 6):
    optimizer.zero_grad()
    model(torch.full((3, 4), float(batch))).square().sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "batch": batch + 1}, "new.pt")
    os.replace("new.pt", "checkpoint.pt")
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    status: int
    seconds: float
    said: str


@dataclass
class Command:
    """A command that is killed, and how what it leaves is looked at."""

    name: str
    arguments: Callable[[Path], list[str]]
    left: Callable[[Path, str], Iterator[str]]
    """What is wrong with what a killed one left, given what it said."""
    again: Callable[[Path], list[str]] | None
    """How it is gone on with; None where it begins anew."""
    result: Callable[[Path], Any]
    """What must be the same as without a kill."""
    expected: Any = None
    seconds: float = 0.0


@dataclass
class Table:
    rows: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """How many, by command, signal and what came of it."""
    wrong: list[str] = field(default_factory=list)


def started(arguments: list[str], folder: Path) -> int:
    """Fork a child that runs the command; its number, which is that of its process group too."""
    temporary = folder / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 99
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        output = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ |= {"TMPDIR": str(temporary), "HARNESS_KILLS": str(folder)}
        tempfile.tempdir = None
        from harness.cli import main

        os.chdir(folder)
        main(arguments, prog_name="harness")
        status = 0
    except SystemExit as error:
        status = int(error.code or 0)
    except KeyboardInterrupt:
        status = 130
    finally:
        sys.stdout.flush()
        os._exit(status)


def waited(child: int, folder: Path, *, after: float | None = None, number: int = signal.SIGKILL) -> Ended:
    """Wait for the child, which gets the signal ``after`` some seconds."""
    began = time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        seconds = time.monotonic() - began
        if done:
            return Ended(os.waitstatus_to_exitcode(status), seconds, (folder / "said").read_text(errors="replace"))
        if after is not None and seconds >= after:
            os.kill(child, number)
            began, after = time.monotonic(), None
        elif after is None and seconds > PATIENCE:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.01)


def orphans(folder: Path) -> list[str]:
    """The processes that the command started and that are still there; they get some seconds."""
    mark, own = f"HARNESS_KILLS={folder}".encode(), str(os.getpid())
    for _ in range(100):
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in environment.read_bytes().split(b"\0") and environment.parent.name != own:
                    found.append(environment.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode()[:200])
            except OSError:  # it ended meanwhile
                continue
        if not found:
            break
        time.sleep(0.1)
    return found


def told(record: Any) -> dict[str, Any]:
    """All that a record says of a run but how long it took, when, and by what command."""
    values: dict[str, Any] = json.loads(record.model_dump_json())
    return {name: value for name, value in values.items() if name not in ("seconds", "started", "provenance")}


def left_by_run(folder: Path, said: str) -> Iterator[str]:
    import torch
    from safetensors.torch import load_file

    from harness.documented_run.record import RunRecord

    out = folder / "out"
    record = out / "run.json"
    if record.exists():
        RunRecord.read(record)
    if (out / "checkpoint.pt").exists():
        torch.load(out / "checkpoint.pt", weights_only=True)
    for weights in (out / "model").glob("*.safetensors"):
        load_file(weights)
    if ("is in" in said or "written to" in said) and not record.exists():
        yield "said that the record is kept, and it is not"
    if "is in" in said and not (record.exists() and RunRecord.read(record).interrupted):
        yield "said that it was interrupted, and the record does not"


def result_of_run(folder: Path) -> Any:
    from harness.documented_run.record import RunRecord

    out = folder / "out"
    model = {path.name: path.read_bytes() for path in sorted((out / "model").iterdir())}
    files = sorted(path.name for path in out.iterdir())
    return told(RunRecord.read(out)) | {"comparison": None}, model, files


def left_by_record(folder: Path, said: str) -> Iterator[str]:
    from harness.documented_run.baseline.stored import Baseline

    candidates = list((folder / "baselines").glob("candidates/*.json"))
    seeds = {run.seed for path in candidates for run in Baseline.read(path).runs}
    if len(seeds) < said.count("added to"):
        yield f"said that {said.count('added to')} seeds were added, and {len(seeds)} are there"


def result_of_record(folder: Path) -> Any:
    from harness.documented_run.baseline.stored import Baseline

    (path,) = (folder / "baselines").glob("candidates/*")
    return [(run.seed, run.curve, run.weights, run.metrics) for run in Baseline.read(path).ordered().runs]


def left_by_documents(folder: Path, said: str) -> Iterator[str]:
    from harness.documented_run.record import DocumentsRecord

    file = folder / "out" / "documents.json"
    if file.exists():
        DocumentsRecord.model_validate_json(file.read_bytes())
    elif "is in" in said:
        yield "said that what was found is kept, and it is not"
    if (folder / "a.md").read_text() != DOCUMENT:
        yield "changed the document"


def result_of_documents(folder: Path) -> Any:
    from harness.documented_run.record import DocumentsRecord

    record = DocumentsRecord.model_validate_json((folder / "out" / "documents.json").read_bytes())
    return [(block.number, block.outcome, block.prints) for block in record.blocks], record.interrupted


def left_by_resume(folder: Path, said: str) -> Iterator[str]:
    """It keeps nothing but its report, and leaves the folder that it copies as it was."""
    left = {path.name for path in folder.iterdir()} - {"said", "tmp", "train.py", "out.json"}
    if left or (folder / "train.py").read_text() != SCRIPT:
        yield f"changed the folder: {sorted(left)}"


def result_of_resume(folder: Path) -> Any:
    found = json.loads((folder / "out.json").read_text())
    return found["kills"], found["findings"]


NAMES = ("run", "run in two processes", "baseline record", "documents", "resume")


def commands(recipe: str) -> Iterator[Command]:
    """Those of :data:`NAMES`, in their order."""

    def run(folder: Path, *more: str) -> list[str]:
        return ["run", "--recipe", recipe, "--output", str(folder / "out"), *more]

    def resumed(folder: Path) -> list[str]:
        return run(folder, "--resume")

    yield Command("run", run, left_by_run, resumed, result_of_run)
    several = ("--loop", "accelerate", "--processes", "2")
    yield Command(
        "run in two processes",
        lambda folder: run(folder, *several),
        left_by_run,
        lambda folder: run(folder, *several, "--resume"),
        result_of_run,
    )

    def record(folder: Path) -> list[str]:
        return ["baseline", "record", "--recipe", recipe, "--seeds", "2", "--baselines", str(folder / "baselines")]

    yield Command("baseline record", record, left_by_record, record, result_of_record)

    def documents(folder: Path) -> list[str]:
        (folder / "a.md").write_text(DOCUMENT)
        return ["documents", str(folder / "a.md"), "--recipe", recipe, "--output", str(folder / "out")]

    yield Command("documents", documents, left_by_documents, documents, result_of_documents)

    def resume(folder: Path) -> list[str]:
        (folder / "train.py").write_text(SCRIPT)
        return ["resume", "--kills", "1", "--json", "out.json", "train.py"]

    yield Command("resume", resume, left_by_resume, resume, result_of_resume)


def killed(command: Command, number: signal.Signals, after: float, folder: Path) -> tuple[str, list[str]]:
    """What came of one kill: in a word, and all that is wrong."""
    ended = waited(started(command.arguments(folder), folder), folder, after=after, number=number)
    by_itself = ended.status == 0
    wrong = [f"left the process {each}" for each in orphans(folder)]
    expected = {-signal.SIGKILL} if number == signal.SIGKILL else {2}
    if not by_itself and ended.status not in expected:
        wrong.append(f"ended with status {ended.status}")
    if "Traceback" in ended.said:
        wrong.append(f"a traceback: {ended.said[-600:]}")
    if number != signal.SIGKILL and not by_itself and "harness: interrupted" not in ended.said:
        wrong.append("did not say that it was interrupted")
    if number != signal.SIGKILL or "processes" in command.name or command.name in ("documents", "resume"):
        wrong += [f"left {each.name}" for each in (folder / "tmp").glob("harness-*")]
    try:
        wrong += command.left(folder, ended.said)
    except Exception as error:  # noqa: BLE001 - whatever a broken file makes of its reader
        wrong.append(f"a broken file: {error}")
    if by_itself:
        return "had ended", wrong
    if command.again is not None:
        again = waited(started(command.again(folder), folder), folder)
        was_whole = "already holds a run; choose" in again.said  # it was killed after all was written
        if again.status != 0 and not was_whole:
            wrong.append(f"did not go on: status {again.status}, {again.said[-400:]}")
        elif command.result(folder) != command.expected:
            wrong.append("went on to another result")
    return "struck", wrong


@contextmanager
def workplace() -> Iterator[tuple[Path, str]]:
    """A folder, and a recipe that trains for a second or two."""
    from harness.documented_run.recipe import RECIPES
    from scripts import corpus

    with tempfile.TemporaryDirectory(prefix="harness-kills-") as name:
        root = Path(name)
        corpus.raw_datasets(seed=7, split_rows=ROWS).save_to_disk(str(root / "data"))
        small = RECIPES["tiny"].with_(name="small", dataset="tests/small", data=str(root / "data"), epochs=3)
        (root / "mine.py").write_text(f"from harness.documented_run.recipe import Recipe\nsmall = {small!r}\n")
        yield root, f"{root / 'mine.py'}:small"


def campaign(
    kills: int, seed: int, names: Sequence[str] = NAMES, *, say: Callable[[str], None] = lambda line: None
) -> Table:
    """Kill each named command in turn, by each signal in turn, at moments of the seed."""
    import harness.documented_run.baseline.sessions
    import harness.documented_run.documents.run
    import harness.documented_run.run  # noqa: F401  what each child would import anew

    drawn, table = random.Random(seed), Table()
    with workplace() as (root, recipe):
        chosen = [command for command in commands(recipe) if command.name in names]
        for command in chosen:
            folder = root / "whole"
            folder.mkdir()
            ended = waited(started(command.arguments(folder), folder), folder)
            if ended.status:
                raise click.ClickException(f"{command.name} ends with status {ended.status}: {ended.said[-2000:]}")
            command.expected, command.seconds = command.result(folder), ended.seconds
            shutil.rmtree(folder)
        for kill in range(kills):
            command, number = chosen[kill % len(chosen)], SIGNALS[kill // len(chosen) % len(SIGNALS)]
            after, folder = drawn.uniform(0.05, 0.95) * command.seconds, root / f"kill-{kill}"
            folder.mkdir()
            came, wrong = killed(command, number, after, folder)
            table.rows[command.name, number.name, "wrong" if wrong else came] += 1
            table.wrong += (
                f"kill {kill} ({command.name}, {number.name} after {after:.2f} s): {each}" for each in wrong
            )
            say(f"{kill}: {command.name}, {number.name} after {after:.2f} s: {'; '.join(wrong) or came}")
            shutil.rmtree(folder, ignore_errors=True)
    return table


@click.command()
@click.option("--kills", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--command", "names", type=click.Choice(NAMES), multiple=True, default=NAMES, help="Which; by default all."
)
def main(kills: int, seed: int, names: tuple[str, ...]) -> None:
    """Kill the command line at random moments, and say what was wrong with what it left."""
    table = campaign(kills, seed, names, say=click.echo)
    for (command, number, came), count in sorted(table.rows.items()):
        click.echo(f"{command:<22}{number:<9}{came:<10}{count:>4}")
    click.echo(f"{kills} kills, {len(table.wrong)} wrong")
    sys.exit(bool(table.wrong))


if __name__ == "__main__":
    main()
