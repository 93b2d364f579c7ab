"""Run a recipe: the stages in order, and the record of what they measured and found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from transformers import set_seed

from harness.errors import CannotTry
from harness.fingerprint import fingerprint
from harness.recipe import Recipe
from harness.record import FILE_NAME, CheckRecord, Curves, FindingRecord, RunRecord
from harness.stages import STAGES, Run, Stage, StageResult, run_stages

MODEL_FOLDER = "model"


def stages_until(name: str | None) -> Sequence[Stage]:
    """All stages up to and with the named one; all of them for None.

    Raises:
        CannotTry: no such stage.
    """
    names = [stage.name for stage in STAGES]
    if name is None:
        return STAGES
    if name not in names:
        raise CannotTry(f"unknown stage {name!r}: expected one of {', '.join(names)}")
    return STAGES[: names.index(name) + 1]


def run_recipe(
    recipe: Recipe,
    *,
    updates: int | None = None,
    until: str | None = None,
    output: Path | None = None,
    on_stage: Callable[[StageResult], None] = lambda result: None,
) -> RunRecord:
    """Run the recipe's stages and return what was measured and found.

    ``updates`` stops the training early, ``until`` stops after a stage. With ``output`` the record is written there as
    run.json, and the fine-tuned model beside it. An interrupt (Ctrl-C) ends the run; what was measured until then is in
    the record, which says that it was interrupted.

    Raises:
        CannotTry: data, weights or the output folder are missing or broken. Nothing is left behind.
    """
    stages = stages_until(until)
    if output is None:
        return _run(recipe, stages, updates, on_stage)[1]
    with _output_folder(output):
        run, record = _run(recipe, stages, updates, on_stage)
        record.write(output / FILE_NAME)  # first, so that a full disk costs the model and not the measurements
        if record.updates and not record.interrupted:
            _save_model(run, output / MODEL_FOLDER)
            record.model = MODEL_FOLDER
            record.write(output / FILE_NAME)
    return record


def _run(
    recipe: Recipe, stages: Sequence[Stage], updates: int | None, on_stage: Callable[[StageResult], None]
) -> tuple[Run, RunRecord]:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    results: list[StageResult] = []

    def keep(result: StageResult) -> None:
        results.append(result)
        on_stage(result)

    run, interrupted = Run(recipe, updates), False
    set_seed(recipe.seed)
    try:
        run_stages(run, stages, on_stage=keep)
    except KeyboardInterrupt:
        interrupted = True
    return run, _record(run, results, started=started, interrupted=interrupted)


def _record(run: Run, results: Sequence[StageResult], *, started: str, interrupted: bool) -> RunRecord:
    made = run.training.updates if hasattr(run, "training") else []
    forwards = [forward for forward in run.training.forwards if forward.gradients] if made else []
    return RunRecord(
        recipe=run.recipe.as_dict(),
        fingerprint=fingerprint(),
        findings=[
            FindingRecord(**finding.as_dict())
            for result in results
            for check in result.checks
            for finding in check.findings
        ],
        updates=len(made),
        curves=Curves(
            loss=[float("nan") if forward.loss is None else forward.loss for forward in forwards[: len(made)]],
            lr=[update.lr for update in made],
            grad_norm=[update.grad_norm for update in made],
        ),
        metrics=run.metrics,
        epochs=run.epochs,
        seconds={result.stage: round(result.seconds, 3) for result in results},
        checks=[
            CheckRecord(
                check=check.check, stage=result.stage, claim=check.claim, outcome=check.outcome, reason=check.reason
            )
            for result in results
            for check in result.checks
        ],
        updates_planned=getattr(run, "num_training_steps", None),
        interrupted=interrupted,
        started=started,
        model=None,
    )


def _save_model(run: Run, folder: Path) -> None:
    """Save model and tokenizer as ``from_pretrained`` reads them; the folder appears when it is complete."""
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        run.model.save_pretrained(unfinished)
        run.tokenizer.save_pretrained(unfinished)
        os.replace(unfinished, folder)
    except OSError as error:
        raise CannotTry(
            f"the run is recorded in {folder.parent}, but its model could not be saved ({error.strerror})"
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def check_writable(folder: Path) -> None:
    """Create a file in the folder and remove it.

    Raises:
        OSError: that is not possible; asking for permissions would not tell (root, read-only file systems).
    """
    probe = folder / f".{FILE_NAME}.{os.getpid()}"
    probe.touch()
    probe.unlink()


@contextmanager
def _output_folder(folder: Path) -> Iterator[None]:
    """The folder exists and can be written while the block runs; it is removed again if the run could not be tried.

    Raises:
        CannotTry: it cannot be created or written, or holds another run, which is never overwritten.
    """
    created: list[Path] = []
    try:
        try:
            if (folder / FILE_NAME).exists() or (folder / MODEL_FOLDER).exists():
                raise CannotTry(
                    f"output folder {folder} already holds a run; choose another folder, or move that one away"
                )
            created = [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
            check_writable(folder)
        except OSError as error:
            raise CannotTry(
                f"output folder {folder} cannot be written ({error.strerror}); choose another with --output"
            ) from error
        yield
    except BaseException:
        for path in created:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        raise
