"""Mutants of what starts train.py: one silent bug for each check, really started, and the documented script as twin."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from harness.documented_run.examples import train
from harness.documented_run.stages import launch
from harness.documented_run.stages.chain import Run
from tests.mutants.distributed_and_trainer_mutants import ACCELERATE, _crashes
from tests.mutants.mutants import mutant


def _is_started(run: Run) -> None:
    """A step that stands in is done unasked."""
    launch.launch(run)


STARTED = {"clean": _is_started, "slow": True, **ACCELERATE}

mutant("launch::completes", **STARTED)(_crashes)


def _starts_edited(run: Run, starter: str, old: str, new: str) -> None:
    """Start train.py with one passage changed."""
    source = Path(train.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1, f"train.py has {source.count(old)} passages {old!r}"
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "edited_train.py")
        script.write_text(source.replace(old, new), encoding="utf-8")
        launch.launch(run, script, (starter,), configured=False)


@mutant("launch::python-trains", **STARTED)
def leaves_the_schedule_alone(run: Run) -> None:
    _starts_edited(run, "python", "            lr_scheduler.step()\n", "")


@mutant("launch::torchrun-trains", **STARTED)
def goes_through_all_rows_in_each_process(run: Run) -> None:
    _starts_edited(
        run,
        "torchrun",
        "train_dl, eval_dl, model, optimizer = accelerator.prepare(train_dataloader, ",
        "train_dl = train_dataloader\n    eval_dl, model, optimizer = accelerator.prepare(",
    )


@mutant("launch::accelerate-launch-trains", **STARTED)
def defines_main_and_never_calls_it(run: Run) -> None:
    _starts_edited(run, "accelerate launch", '\n\nif __name__ == "__main__":\n    main()\n', "\n")


@mutant("launch::accelerate-launch-distributes", **STARTED)
def starts_one_process(run: Run) -> None:
    """As --cpu does, without a word."""
    with patch.dict(launch.STARTERS, {"accelerate launch, two processes": launch.STARTERS["accelerate launch"]}):
        launch.launch(run, starters=("accelerate launch, two processes",), configured=False)


def _on_colab(run: Run) -> None:
    """The documents' cell, where Accelerate sees what Colab looks like."""
    colab = """
import sys, types
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: "google.colab")
"""
    printed = launch.Starter(lambda script, data: [sys.executable, "-c", colab + launch.as_printed(script, data)])
    with patch.dict(launch.STARTERS, {"notebook_launcher, as printed": printed}):
        launch.launch(run, starters=("notebook_launcher, as printed",), configured=False)


@mutant("launch::notebook-launcher-trains-as-printed", **{**STARTED, "clean": _on_colab})
def is_started_anywhere_else(run: Run) -> None:
    launch.launch(run, starters=("notebook_launcher, as printed",), configured=False)


@mutant("launch::notebook-launcher-trains", **STARTED)
def leaves_the_epoch_after_one_update(run: Run) -> None:
    bar = "            progress_bar.update(1)\n"
    _starts_edited(run, "notebook_launcher", bar, f"{bar}            break\n")


@mutant("launch::the-answers-are-kept-and-used", **STARTED)
def asks_nothing(run: Run) -> None:
    launch.launch(run, starters=(), configured=False)


@mutant("launch::the-answers-are-kept-and-used", **STARTED)
def keeps_the_answers_elsewhere(run: Run) -> None:
    launch.launch(run, starters=("accelerate launch",), configured=False)
    run.configured = Path(launch.CONFIGURATION)
