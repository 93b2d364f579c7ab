"""Run a recipe: the stages in order, and the record of what they measured and found."""

from __future__ import annotations

import hashlib
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from transformers import set_seed

from harness import launch
from harness.compat import facts, no_progress_bars
from harness.errors import CannotTry
from harness.files import check_writable
from harness.fingerprint import data_digest, fingerprint, provenance, weights_digest
from harness.loops.accelerated import separate_state
from harness.metrics import scores_of
from harness.recipe import Recipe, is_module
from harness.record import FILE_NAME, Curves, Provenance, RunRecord
from harness.stages import STAGES, Run, Stage, StageResult, run_stages
from harness.stages.model import checkpoint_tensors
from harness.torch_objects import checksum

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


def _silent(result: StageResult) -> None:
    pass


@dataclass(frozen=True)
class RunRequest:
    """What to run, how far, and where it is kept: what each process of a run is told."""

    recipe: Recipe
    updates: int | None = None
    until: str | None = None
    output: Path | None = None
    on_stage: Callable[[StageResult], None] = _silent
    installation: bool = False


def run_recipe(
    recipe: Recipe,
    *,
    updates: int | None = None,
    until: str | None = None,
    output: Path | None = None,
    on_stage: Callable[[StageResult], None] = _silent,
    timeout: float = launch.PATIENCE,
    installation: bool = False,
) -> RunRecord:
    """Run the recipe's stages and return what was measured and found.

    ``updates`` stops the training early, ``until`` stops after a stage, ``installation`` has the stages costs and
    launch done as well. With ``output`` the record is written there as
    run.json, and the fine-tuned model beside it. An interrupt (Ctrl-C) ends the run; what was measured until then is in
    the record, which says that it was interrupted.

    A recipe with several processes has them started, unless a launcher (torchrun, accelerate launch) already did; the
    first of them calls ``on_stage``, a function of a module, and writes. One that hangs for ``timeout`` seconds ends
    the run. They import the script that calls this: it needs ``if __name__ == "__main__":``.

    Raises:
        CannotTry: data, weights or the output folder are missing or broken, or a process failed, died or hung. No
            folder and no process is left behind.
    """
    stages_until(until)
    request = RunRequest(recipe, updates, until, output, on_stage, installation)
    launched = launch.world_size() or 1
    if launch.world_size() is None and recipe.processes > 1:
        with _output_folder(output):
            run = partial(_in_a_process, request)
            return launch.in_processes(run, processes=recipe.processes, patience=timeout)[0]
    if launched > 1 and not recipe.distributable:
        raise CannotTry(
            f"the loop {recipe.loop} runs in one process and {launched} were started; choose --loop accelerate"
        )
    with (
        launch.watched(timeout) if launched > 1 else nullcontext(),
        _output_folder(output if launch.is_main_process() else None),
        launch.process_group(timeout) if launched > 1 else nullcontext(),
    ):
        return _run_and_write(request)


def preflight(recipe: Recipe, *, timeout: float = launch.PATIENCE) -> RunRecord:
    """Run the stages before training: they tell data, weights and device before updates are spent.

    Raises:
        CannotTry: it was interrupted, or something was found already.
    """
    record = run_recipe(recipe, until="schedule", timeout=timeout)
    if record.interrupted:
        raise CannotTry("interrupted before the first update")
    if record.checks_failed:
        found = sorted({finding.check for finding in record.findings if finding.severity == "error"})
        raise CannotTry(f"{', '.join(found)} failed before the first update; harness run says more")
    return record


def _in_a_process(request: RunRequest) -> RunRecord:
    quiet_libraries()
    return _run_and_write(request)


def quiet_libraries() -> None:
    """Leave the terminal to the harness: no loading bars, no notes on what the model stage checks anyway."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    import transformers

    no_progress_bars()
    # What the model and optimizer stages look at anyway.
    warnings.filterwarnings("ignore", "This implementation of AdamW is deprecated", FutureWarning)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def _run_and_write(request: RunRequest) -> RunRecord:
    """The run in this process; where there are several, the first speaks and writes."""
    main = launch.is_main_process()
    run, record = _run(request if main else replace(request, on_stage=_silent))
    output = request.output
    if output is not None and main:
        record.write(output / FILE_NAME)  # first, so that a full disk costs the model and not the measurements
        if record.updates and not record.interrupted:
            _save_model(run, output / MODEL_FOLDER)
            record.model = MODEL_FOLDER
            record.write(output / FILE_NAME)
    return record


def _run(request: RunRequest) -> tuple[Run, RunRecord]:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    results: list[StageResult] = []

    def keep(result: StageResult) -> None:
        results.append(result)
        request.on_stage(result)

    scores_of(request.recipe)  # a metric that cannot be computed is known before the first update
    run, interrupted = Run(request.recipe, request.updates, request.installation), False
    set_seed(request.recipe.seed)
    try:
        with separate_state():
            run_stages(run, stages_until(request.until), on_stage=keep)
    except KeyboardInterrupt:
        interrupted = True
    return run, run_record(run, results, started=started, interrupted=interrupted)


def run_record(run: Run, results: Sequence[StageResult], *, started: str, interrupted: bool) -> RunRecord:
    made = run.training.updates if hasattr(run, "training") else []
    forwards = [forward for forward in run.training.forwards if forward.gradients] if made else []
    whole = bool(made) and not interrupted
    checks = [check for result in results for check in result.checks]
    return RunRecord(
        recipe=run.recipe.as_dict(),
        fingerprint=fingerprint(run.device.type if hasattr(run, "device") else None),
        findings=[finding for check in checks for finding in check.findings],
        updates=len(made),
        curves=Curves(
            loss=[float("nan") if forward.loss is None else forward.loss for forward in forwards[: len(made)]],
            lr=[update.lr for update in made],
            grad_norm=[update.grad_norm for update in made],
        ),
        metrics=run.metrics,
        epochs=run.epochs,
        seconds={result.stage: round(result.seconds, 3) for result in results},
        checks=[*checks],
        updates_planned=getattr(run, "num_training_steps", None),
        interrupted=interrupted,
        started=started,
        model=None,
        inputs=inputs(run),
        rows={name: len(rows) for name, rows in getattr(run, "raw_datasets", {}).items()},
        provenance=Provenance(**provenance()),
        weights=f"{checksum(run.model.parameters()):016x}" if whole else None,
        apart=run.replays.max_differences,
        facts=facts(),
        differences=run.replays.differences,
    )


def inputs(run: Run) -> dict[str, str]:
    """What data, checkpoint and the user's own metrics hold, as SHA-256; those that the run came to and can be read."""
    found = {}
    with suppress(Exception):  # what is not known is not compared with; the measurements are worth more
        found["data"] = data_digest(run.raw_datasets)
    with suppress(Exception):
        found["checkpoint"] = weights_digest(checkpoint_tensors(run.checkpoint))
    for metric in filter(is_module, run.recipe.metrics):
        with suppress(OSError):
            found[Path(metric).name] = hashlib.sha256(Path(metric).read_bytes()).hexdigest()
    return found


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


@contextmanager
def _output_folder(folder: Path | None) -> Iterator[None]:
    """The folder exists and can be written while the block runs; it is removed again if nothing could run.

    Raises:
        CannotTry: it cannot be created or written, or holds another run, which is never overwritten.
    """
    if folder is None:
        yield
        return
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
