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
from typing import Any

from safetensors import SafetensorError
from transformers import set_seed

from harness import launch
from harness.compat import facts, no_progress_bars
from harness.documented_run.loops.accelerated import separate_state
from harness.documented_run.metrics import scores_of
from harness.documented_run.recipe import Recipe, is_module
from harness.documented_run.record import FILE_NAME, Curves, Digests, Provenance, RunRecord, TensorDigests
from harness.documented_run.sources import find_checkpoint
from harness.documented_run.stages import STAGES, Run, Stage, StageResult, run_stages
from harness.documented_run.stages.checkpoint import checkpoint_tensors
from harness.documented_run.stages.resuming import Keeper
from harness.documented_run.stages.trace import Trace
from harness.errors import CannotTry
from harness.files import claimed_folder, no_space, remove_unfinished
from harness.fingerprint import data_digest, fingerprint, provenance, weights_digest
from harness.torch_objects import checksum

MODEL_FOLDER = "model"
CHECKPOINT = "checkpoint.pt"
"""What a run that was killed goes on from; gone when the run is whole."""


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
    resume: bool = False


def run_recipe(
    recipe: Recipe,
    *,
    updates: int | None = None,
    until: str | None = None,
    output: Path | None = None,
    on_stage: Callable[[StageResult], None] = _silent,
    timeout: float = launch.PATIENCE,
    installation: bool = False,
    resume: bool = False,
) -> RunRecord:
    """Run the recipe's stages and return what was measured and found.

    ``updates`` stops the training early, ``until`` stops after a stage, ``installation`` has the stages costs and
    launch done as well. With ``output`` the record is written there as run.json, and the fine-tuned model beside it. An
    interrupt (Ctrl-C) ends the run; what was measured until then is in the record, which says that it was interrupted.

    After each epoch ``output`` keeps what a run that was killed goes on from: with ``resume`` it goes on after the last
    whole epoch, or begins anew where there is none, and comes to the same bits as without a break.

    A recipe with several processes has them started, unless a launcher (torchrun, accelerate launch) already did; the
    first of them calls ``on_stage``, a function of a module, and writes. One that hangs for ``timeout`` seconds ends
    the run. They import the script that calls this: it needs ``if __name__ == "__main__":``.

    Raises:
        CannotTry: data, weights or the output folder are missing or broken, or a process failed, died or hung. No
            folder and no process is left behind. Or the output folder is another run's.
    """
    stages = stages_until(until)
    request = RunRequest(recipe, updates, until, output, on_stage, installation, resume)
    launched = launch.world_size() or 1
    if launch.world_size() is None and recipe.processes > 1:
        _check_checkpoint(recipe, stages)
        with _output_folder(request):
            return _in_processes(request, timeout)
    if launched > 1 and not recipe.distributable:
        raise CannotTry(
            f"the loop {recipe.loop} runs in one process but {launched} were started; choose --loop accelerate"
        )
    _check_checkpoint(recipe, stages)
    with (
        launch.watched(timeout) if launched > 1 else nullcontext(),
        _output_folder(request) if launch.is_main_process() else nullcontext(),
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
        raise CannotTry(f"{', '.join(found)} failed before the first update; harness run shows more")
    return record


def _check_checkpoint(recipe: Recipe, stages: Sequence[Stage]) -> None:
    """Whether there is what the stages load: known before the first of them.

    Raises:
        CannotTry: there is not.
    """
    names = {stage.name for stage in stages}
    if "tokenize" in names:
        find_checkpoint(recipe, weights="model" in names)


def _in_processes(request: RunRequest, timeout: float) -> RunRecord:
    """The record of the first of the recipe's processes; what it had written, where they were interrupted."""
    run = partial(_in_a_process, request)
    try:
        return launch.in_processes(run, processes=request.recipe.processes, patience=timeout)[0]
    except KeyboardInterrupt:
        if request.output is None or not (request.output / FILE_NAME).exists():
            raise
        return RunRecord.read(request.output)
    except CannotTry:
        _remove_if_nothing_was_measured(request.output)
        raise


def _remove_if_nothing_was_measured(output: Path | None) -> None:
    """Remove the record of a rank that was ended because another failed, which is an interrupt to it: a record with
    updates is kept."""
    if output is not None and (output / FILE_NAME).exists() and not RunRecord.read(output).updates:
        (output / FILE_NAME).unlink()


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
        if not record.interrupted:
            (output / CHECKPOINT).unlink(missing_ok=True)
    return record


def _run(request: RunRequest) -> tuple[Run, RunRecord]:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    results: list[StageResult] = []

    def keep(result: StageResult) -> None:
        results.append(result)
        request.on_stage(result)

    scores_of(request.recipe)  # a metric that cannot be computed is known before the first update
    run, interrupted = Run(request.recipe, request.updates, request.installation, _keeper(request)), False
    set_seed(request.recipe.seed)
    try:
        with separate_state():
            run_stages(run, stages_until(request.until), on_stage=keep)
    except KeyboardInterrupt:
        interrupted = True
    return run, run_record(run, results, started=started, interrupted=interrupted)


def _keeper(request: RunRequest) -> Keeper | None:
    """What keeps the run's epochs, where there is a folder for them."""
    if request.output is None:
        return None

    def about(run: Run) -> dict[str, Any]:
        return _asked(request) | {"fingerprint": fingerprint(run.device.type), "inputs": inputs(run)}

    return Keeper(request.output / CHECKPOINT, about, request.resume)


def _asked(request: RunRequest) -> dict[str, Any]:
    return {"recipe": request.recipe.as_dict(), "updates": request.updates}


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
        provenance=Provenance(**provenance(), resumed_after=run.gone_on_after or None),
        weights=f"{checksum(run.model.parameters()) % 2**64:016x}" if whole else None,
        digests=digests(run.training) if made else None,
        apart=run.replays.max_differences,
        facts=facts(),
        differences=run.replays.differences,
    )


def digests(trace: Trace) -> Digests:
    """What tells where another run parts from this one."""
    forwards = [forward for forward in trace.forwards if forward.gradients][: len(trace.updates)]
    return Digests(
        rows=[" ".join(row[:8] for row in forward.rows) for forward in forwards],
        random=[update.random or "" for update in trace.updates],
        tensors=[TensorDigests(update=at, weights=w, gradients=g) for at, (w, g) in trace.tensors.items()],
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
        shutil.rmtree(folder, ignore_errors=True)  # of this run, where it was killed after this and went on
        os.replace(unfinished, folder)
    except (OSError, SafetensorError) as error:
        raise CannotTry(
            f"the run is recorded in {folder.parent}, but its model could not be saved ({no_space(error) or error})"
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _output_folder(request: RunRequest) -> Iterator[None]:
    """The output folder is this run's alone while the block runs; it is removed again if nothing could run.

    Raises:
        CannotTry: it cannot be created or written, is another run's, or holds a run, which is never overwritten.
    """
    folder = request.output
    if folder is None:
        yield
        return
    created: list[Path] = []
    try:
        created = [path for path in (folder, *folder.parents) if not os.path.exists(path)]
        with claimed_folder(folder):
            _check_vacant(folder, resume=request.resume)
            remove_unfinished(*(folder / name for name in (FILE_NAME, MODEL_FOLDER, CHECKPOINT)))
            Keeper(folder / CHECKPOINT, lambda run: {}, request.resume).check_begun(_asked(request))
            yield
    except BaseException:
        for path in created:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        raise


def _check_vacant(folder: Path, *, resume: bool) -> None:
    """Whether a run may be written to the folder.

    Raises:
        CannotTry: it holds a run that is whole, or one that was interrupted and is not to be gone on with.
    """
    recorded = (folder / FILE_NAME).exists()
    unfinished = (folder / CHECKPOINT).exists() or (recorded and RunRecord.read(folder).interrupted)
    if unfinished and not resume:
        raise CannotTry(
            f"output folder {folder} already holds an interrupted run; continue it with --resume, or choose another "
            "folder"
        )
    if recorded and not unfinished and resume:
        raise CannotTry(
            f"the run in output folder {folder} is finished, so there is nothing to continue; choose another folder "
            "for another run"
        )
    if not unfinished and (recorded or (folder / MODEL_FOLDER).exists()):
        raise CannotTry(f"output folder {folder} already holds a run; choose another folder, or move this one away")
