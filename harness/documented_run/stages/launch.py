"""Launch: train.py, started in each of the ways that the documents name (document "Supercharge your training loop").

Each start trains two updates of the built-in recipe in processes of its own. That takes about a minute of CPU, and says
something of the installation and nothing of the run: it is done where it is asked for (``harness run --installation``).
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import harness
from harness import processes
from harness.compat import accelerates_variable
from harness.documented_run.claims import claim
from harness.documented_run.examples import train
from harness.documented_run.sources import builtin
from harness.documented_run.stages.chain import Run, Stage
from harness.documented_run.stages.measures.results import Launched
from harness.findings import Finding, NotApplicable


def not_asked_for(run: Run) -> str | None:
    """Why the stage is passed over; None where its starts were asked for."""
    if run.recipe.processes > 1:
        return "starts processes of its own; harness run --loop accelerate --installation does"
    return None if run.installation else "a minute of CPU; harness run --loop accelerate --installation does it"


STAGE = Stage("launch", loops=("accelerate",), passed_over=not_asked_for)

UPDATES = 2
"""Updates of each start."""

BATCH_SIZE = 8
"""train.py's, of each process."""

TIMEOUT = 300.0
"""Seconds after which a start counts as hung."""

GRACE = 10.0
"""Seconds that a launcher has to end its processes."""

QUIET = 0.5
"""Seconds without output after which ``accelerate config`` waits for an answer."""

MOST_ANSWERS = 40

CONFIGURATION = "accelerate/default_config.yaml"
"""Where Accelerate keeps its configuration in ``HF_HOME``."""

_ERROR = re.compile(r"(\[rank\d+\]: )?[\w.]*(Error|Exception)\b")
_OF_A_LAUNCHER = re.compile(r"CalledProcessError|ChildFailedError")
_BAR = re.compile(r"\d+%\|")

_ACCELERATE = (sys.executable, "-m", "accelerate.commands.accelerate_cli")  # the command accelerate
_TORCHRUN = (sys.executable, "-m", "torch.distributed.run")  # the command torchrun

_CELL = """\
import sys
sys.path.insert(0, {folder!r})
from accelerate import notebook_launcher
from {module} import training_function
notebook_launcher(training_function, ("tiny", {data!r}, 1), num_processes=2, use_port={port!r})
"""


_AS_PRINTED = """\
import sys
sys.path.insert(0, {folder!r})
from accelerate import notebook_launcher
from {module} import training_function as pasted

def training_function():
    pasted("tiny", {data!r}, 1)

notebook_launcher(training_function)
"""
"""The documents' last cell, below a function that takes nothing, as theirs."""


@dataclass(frozen=True)
class Starter:
    """One of the ways to start train.py."""

    command: Callable[[Path, Path], Sequence[str]]
    """Command for the script and the folder with the corpus."""
    processes: int = 1


def _script(script: Path, data: Path) -> list[str]:
    return [str(script), "--data", str(data), "--epochs", "1"]


def _cell(script: Path, data: Path) -> str:
    return _CELL.format(folder=str(script.parent), module=script.stem, data=str(data), port=_free_port())


STARTERS = {
    "python": Starter(lambda script, data: [sys.executable, *_script(script, data)]),
    "accelerate launch": Starter(lambda script, data: [*_ACCELERATE, "launch", *_script(script, data)]),
    "torchrun": Starter(
        lambda script, data: [
            *_TORCHRUN,
            "--nproc-per-node=2",
            f"--master-port={_free_port()}",
            *_script(script, data),
        ],
        processes=2,
    ),
    "accelerate launch, two processes": Starter(
        lambda script, data: [
            *_ACCELERATE,
            "launch",
            "--multi_gpu",  # which starts processes on CPUs too, where ACCELERATE_USE_CPU says so; --cpu starts one
            "--num_processes=2",
            f"--main_process_port={_free_port()}",
            *_script(script, data),
        ],
        processes=2,
    ),
    "notebook_launcher": Starter(lambda script, data: [sys.executable, "-c", _cell(script, data)], processes=2),
    "notebook_launcher, as printed": Starter(lambda script, data: [sys.executable, "-c", as_printed(script, data)]),
}


def as_printed(script: Path, data: Path) -> str:
    return _AS_PRINTED.format(folder=str(script.parent), module=script.stem, data=str(data))


def _free_port() -> str:
    """Below those that a system gives to whoever asks for any: seconds pass until the processes meet there."""
    while True:
        port = 10_000 + secrets.randbelow(19_000)  # whatever seed was set: two runs side by side want two ports
        with socket.socket() as tried:
            try:
                tried.bind(("", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return str(port)


@STAGE.step
def launch(
    run: Run, script: Path = Path(train.__file__), starters: Sequence[str] = (*STARTERS,), *, configured: bool = True
) -> None:
    """Answer ``accelerate config``, and start the script in each of the ways, one after the other."""
    with TemporaryDirectory(prefix="harness-launch-") as folder, processes.afterwards(Path(folder)) as left_behind:
        home = Path(folder)
        for ranks in {STARTERS[name].processes for name in starters}:
            rows = {"train": BATCH_SIZE * UPDATES * ranks, "validation": 2 * BATCH_SIZE, "test": 1}
            data = builtin.raw_datasets()
            data.update({split: data[split].select(range(wanted)) for split, wanted in rows.items()})
            data.save_to_disk(str(home / f"for-{ranks}"))
        if configured:
            run.configured = answered([*_ACCELERATE, "config"], home, left_behind)
        for name in starters:
            starter = STARTERS[name]
            command = starter.command(script, home / f"for-{starter.processes}")
            run.launched[name] = started(command, home, left_behind, on_cpus=starter.processes > 1)


def environment(home: Path, *, on_cpus: bool = False) -> dict[str, str]:
    """Without what a launcher has set for this process, and with a home of its own for Accelerate's configuration."""
    ours = re.compile(r"(ACCELERATE|TORCHELASTIC|MASTER|PET)_.*|(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)")
    kept = {name: value for name, value in os.environ.items() if not ours.fullmatch(name)}
    path = os.pathsep.join(filter(None, (str(Path(harness.__file__).parents[1]), kept.get("PYTHONPATH"))))
    kept |= {"HF_HOME": str(home), "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    return kept | ({accelerates_variable("ACCELERATE_USE_CPU"): "true"} if on_cpus else {})


def started(
    command: Sequence[str],
    home: Path,
    left_behind: processes.Afterwards | None = None,
    *,
    on_cpus: bool = False,
    timeout: float = TIMEOUT,
) -> Launched:
    """Run a command to its end, or for ``timeout`` seconds; no process of it is left behind."""
    with (home / "stdout").open("w+") as stdout, (home / "stderr").open("w+") as stderr:
        streams = {"stdout": stdout, "stderr": stderr, "stdin": subprocess.DEVNULL}
        how = {"cwd": home, "env": environment(home, on_cpus=on_cpus)}
        status = None
        with (
            processes.started(command, left_behind, grace=GRACE, **streams, **how) as process,
            suppress(subprocess.TimeoutExpired),
        ):
            status = process.wait(timeout)
        for file in (stdout, stderr):
            file.seek(0)
        printed, errors = stdout.read(), stderr.read()
    return Launched(status, _says(errors) or _last_line(printed), counts(printed), "--num_processes" in errors)


def counts(printed: str) -> dict[str, float] | None:
    """What train.py tells in its last line; None where that is something else."""
    try:
        found = json.loads(_last_line(printed))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _says(errors: str) -> str:
    """The error that began it, and not that of a launcher whose process failed, nor what a bar shows at its end."""
    raised = [line for line in _lines(errors) if _ERROR.match(line)]
    others = [line for line in _lines(errors) if not _BAR.search(line)]
    return next((line for line in raised if not _OF_A_LAUNCHER.search(line)), "") or (others[-1] if others else "")


def _last_line(text: str) -> str:
    return next(reversed(_lines(text)), "")


def _lines(text: str) -> list[str]:
    return [line for line in re.split(r"[\r\n]+", text) if line.strip()]


def answered(command: Sequence[str], home: Path, left_behind: processes.Afterwards | None = None) -> Path | None:
    """Press Enter at each question of ``accelerate config``, at a terminal of its own; None where it left no file.

    Enter is the answer that it proposes; older versions of Accelerate propose none where they number the choices.
    """
    if sys.platform == "win32":
        return None
    import pty

    ours, its = pty.openpty()
    how = {"stdin": its, "stdout": its, "stderr": its, "cwd": home, "env": environment(home)}
    try:
        with processes.started(command, left_behind, grace=GRACE, **how) as process:
            os.close(its)
            answers = _answer(process, ours)
    finally:
        os.close(ours)
    file = home / CONFIGURATION
    return file if answers and process.returncode == 0 and file.is_file() else None


def _answer(process: subprocess.Popen[bytes], terminal: int) -> int:
    """Press Enter wherever it is quiet, until it ends: how often."""
    asked, answers, end = b"", 0, time.monotonic() + TIMEOUT
    while process.poll() is None and answers < MOST_ANSWERS and time.monotonic() < end:
        if select.select([terminal], [], [], QUIET)[0]:
            try:
                asked += os.read(terminal, 4096)
            except OSError:  # what Linux says at the end of a terminal
                break
        elif asked:
            os.write(terminal, b"0\r" if b"([0]" in asked else b"\r")
            asked, answers = b"", answers + 1
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    return answers


ANYWHERE = claim("launch-anywhere")


@STAGE.check(ANYWHERE)
def python_trains(run: Run) -> Iterator[Finding]:
    """Started by python, train.py makes its updates in one process and evaluates."""
    return _trains(run, "python")


@STAGE.check(ANYWHERE)
def torchrun_trains(run: Run) -> Iterator[Finding]:
    """Started by torchrun, two processes share the rows of train.py and make half the updates each."""
    return _trains(run, "torchrun")


@STAGE.check(claim("accelerate-config"))
def the_answers_are_kept_and_used(run: Run) -> Iterator[Finding]:
    """accelerate config leaves its file, and accelerate launch then takes no defaults of its own."""
    if sys.platform == "win32":
        raise NotApplicable("accelerate config is answered at a pseudo-terminal")
    launched = run.launched.get("accelerate launch")
    if run.configured is None or (launched is not None and launched.warned):
        yield Finding(
            expected=f"{CONFIGURATION} in HF_HOME, read by accelerate launch",
            observed="no such file" if run.configured is None else "defaults in place of the answers",
            where="accelerate config",
            hint="Write the file with accelerate config default, or give accelerate launch its options.",
        )


@STAGE.check(claim("accelerate-launch"))
def accelerate_launch_trains(run: Run) -> Iterator[Finding]:
    """Started by accelerate launch with the answers of accelerate config, train.py makes its updates and evaluates."""
    return _trains(run, "accelerate launch")


@STAGE.check(claim("accelerate-launch-distributed"))
def accelerate_launch_distributes(run: Run) -> Iterator[Finding]:
    """Started by accelerate launch in two processes, train.py shares its rows and makes half the updates in each."""
    return _trains(run, "accelerate launch, two processes")


@STAGE.check(claim("notebook-launcher"))
def notebook_launcher_trains(run: Run) -> Iterator[Finding]:
    """Started by notebook_launcher in two processes, training_function shares the rows among them and evaluates."""
    return _trains(run, "notebook_launcher")


@STAGE.check(
    claim("notebook-launcher-as-printed"),
    severity="warning",  # one argument more starts it
)
def notebook_launcher_trains_as_printed(run: Run) -> Iterator[Finding]:
    """Started by notebook_launcher(training_function) without a number of processes, training_function trains.

    Accelerate does that on Colab and Kaggle alone; elsewhere it asks for num_processes.
    """
    return _trains(run, "notebook_launcher, as printed", hint="Give it the number: num_processes=1, or as many GPUs.")


def _trains(run: Run, name: str, hint: str = "") -> Iterator[Finding]:
    launched = run.launched[name]
    expected = {"processes": STARTERS[name].processes, "updates": UPDATES, "lr": 0.0}
    if launched.status != 0 or launched.counted is None:
        ended = "hung" if launched.status is None else f"exit status {launched.status}"
        yield Finding(
            expected="exit status 0 and a line with what was trained",
            observed=f"{ended}: {launched.says}",
            where=name,
            hint=hint
            or "Start harness/documented_run/examples/train.py this way by hand, with these versions, and read all "
            "that it prints.",
        )
        return
    counted = launched.counted
    fractions = all(0 <= counted.get(metric, -1) <= 1 for metric in ("accuracy", "f1"))
    observed = {key: counted.get(key) for key in expected}
    if observed != expected or not fractions:
        yield Finding(
            expected=f"{_said(expected)}, and accuracy and F1 as fractions",
            observed=_said(counted),
            where=name,
            hint="The processes did not share the work, or did not finish it: look at what the launcher passes on.",
        )


def _said(counted: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {value}" for name, value in counted.items())
