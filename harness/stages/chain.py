"""Stage and Run: what a documented step is, and what one leaves for the next."""

from __future__ import annotations

import inspect
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from harness.claims import CLAIMS
from harness.errors import CannotTry
from harness.findings import Check, CheckResult, Finding, NotApplicable, Severity
from harness.recipe import Recipe

if TYPE_CHECKING:
    from datasets import DatasetDict
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler
    from torch.utils.data import DataLoader
    from tqdm.auto import tqdm
    from transformers import DataCollatorWithPadding, PreTrainedModel, PreTrainedTokenizerBase

    from harness.watch.trace import Trace


@dataclass
class Run:
    """One pass through the documented steps. Each step fills in what it makes, under the document's own name for it."""

    recipe: Recipe
    updates: int | None = None
    """Stop after so many updates; the schedule stays planned for all of them."""

    raw_datasets: DatasetDict = field(init=False)
    tokenizer: PreTrainedTokenizerBase = field(init=False)
    tokenize_function: Callable[[dict[str, Any]], Any] = field(init=False)
    tokenized_datasets: DatasetDict = field(init=False)
    data_collator: DataCollatorWithPadding = field(init=False)
    model_datasets: DatasetDict = field(init=False)
    """The tokenized datasets with the model's columns only, as tensors."""
    train_dataloader: DataLoader[Any] = field(init=False)
    eval_dataloader: DataLoader[Any] = field(init=False)
    checkpoint: str = field(init=False)
    model: PreTrainedModel = field(init=False)
    device: torch.device = field(init=False)
    optimizer: Optimizer = field(init=False)
    num_training_steps: int = field(init=False)
    lr_scheduler: LRScheduler = field(init=False)
    planned_lrs: list[float] = field(init=False)
    """What the schedule gives: before the first update, then after each."""
    progress_bar: tqdm[Any] = field(init=False)
    training: Trace = field(init=False)
    """What the training loop did."""
    epochs: list[dict[str, float]] = field(default_factory=list)
    """The metrics after each epoch."""
    evaluation: Trace = field(init=False)
    """What the evaluation loop did."""
    metrics: dict[str, float] = field(default_factory=dict)
    """What the evaluation loop's metric computed: accuracy and F1, as fractions."""

    @property
    def shortened(self) -> bool:
        """Whether training stops before the planned last update."""
        return self.updates is not None and self.updates < self.num_training_steps

    def whole_run_only(self) -> None:
        """For checks of what only a whole run can show.

        Raises:
            NotApplicable: this run stops early.
        """
        if self.shortened:
            raise NotApplicable(f"stopped after {self.updates} of {self.num_training_steps} updates")


Step = Callable[[Run], None]


@dataclass(frozen=True)
class StageResult:
    stage: str
    seconds: float
    checks: tuple[CheckResult, ...]

    @property
    def failed(self) -> bool:
        return any(check.failed for check in self.checks)


class Stage:
    """One documented step: it does the step, and carries the checks of what must hold after it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.do: Step
        self.checks: list[Check[Run]] = []
        self.completes = Check[Run](
            f"{name}::completes", "step-completes", f"The step {name} runs to its end.", lambda run: iter(())
        )

    def step(self, function: Step) -> Step:
        """Register the documented step."""
        self.do = function
        return function

    def check(
        self, claim: str, *, severity: Severity = "error", otherwise: str | None = None
    ) -> Callable[[Callable[[Run], Iterator[Finding]]], Check[Run]]:
        """Register a check that stands for a claim or invariant; its docstring is the statement, its name the id.

        Where the claim does not apply to the recipe, neither does the check, unless it stands for an invariant
        ``otherwise``.
        """

        def register(function: Callable[[Run], Iterator[Finding]]) -> Check[Run]:
            statement = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
            name = f"{self.name}::{function.__name__.replace('_', '-')}"
            check = Check(name, claim, statement, function, severity, otherwise)
            self.checks.append(check)
            return check

        return register

    def run(self, run: Run, step: Step | None = None) -> StageResult:
        """Do the step, then look; what the checks draw at random is put back, and the run goes on as if nobody had.

        ``step`` stands in for the documented step: a mutant, or a user's own.

        Raises:
            CannotTry: the step's input is missing or broken.
        """
        began = time.perf_counter()
        try:
            with without_datasets_cache():
                (step or self.do)(run)
        except CannotTry:
            raise
        except Exception as error:
            crash = Finding(
                check=self.completes.id,
                message=self.completes.statement,
                expected="no error",
                observed=f"{type(error).__name__}: {error}",
                where=_where(error),
                hint="The documented step fails on these library versions; look there, or at what changed in them.",
            )
            results = [CheckResult(self.completes.id, self.completes.claim, "fails", (crash,))]
        else:
            with unchanged_random_state(*_generators(run)):
                results = [
                    CheckResult(self.completes.id, self.completes.claim, "holds"),
                    *(_look(check, run) for check in self.checks),
                ]
        return StageResult(self.name, time.perf_counter() - began, tuple(results))


def _look(check: Check[Run], run: Run) -> CheckResult:
    claim = CLAIMS.get(check.claim)
    reason = claim.not_applicable(run.recipe) if claim else None
    if reason is None:
        return check(run)
    return replace(check, claim=check.otherwise)(run) if check.otherwise else check.not_applicable(reason)


def _where(error: Exception) -> str | None:
    """FILE:LINE of the innermost frame of the error's traceback."""
    traceback = error.__traceback__
    while traceback and traceback.tb_next:
        traceback = traceback.tb_next
    return f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}" if traceback else None


def _generators(run: Run) -> list[torch.Generator]:
    """The generators of the dataloaders that have one of their own."""
    loaders = [getattr(run, name) for name in ("train_dataloader", "eval_dataloader") if hasattr(run, name)]
    return [loader.generator for loader in loaders if loader.generator is not None]


@contextmanager
def without_datasets_cache() -> Iterator[None]:
    """``map`` and ``cast`` do their work anew: what an older library computed would hide what the new one does.

    Nothing is written beside the user's data either.
    """
    from datasets import disable_caching, enable_caching, is_caching_enabled

    enabled = is_caching_enabled()
    disable_caching()
    try:
        yield
    finally:
        if enabled:
            enable_caching()


def first_difference(first: Sequence[Any], second: Sequence[Any]) -> int | None:
    """The first place at which two sequences differ, the end of the shorter one included; None if they are equal."""
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return None if len(first) == len(second) else min(len(first), len(second))


@contextmanager
def unchanged_random_state(*generators: torch.Generator) -> Iterator[None]:
    """Whatever is drawn inside, Python, NumPy, torch and ``generators`` go on afterwards as if it had not been."""
    python, numpy, states = random.getstate(), np.random.get_state(), [each.get_state() for each in generators]
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            for generator, state in zip(generators, states, strict=True):
                generator.set_state(state)


def run_stages(
    run: Run, stages: Sequence[Stage], *, on_stage: Callable[[StageResult], None] = lambda result: None
) -> list[StageResult]:
    """The stages in order, up to and with the first that fails."""
    results: list[StageResult] = []
    for stage in stages:
        results.append(stage.run(run))
        on_stage(results[-1])
        if results[-1].failed:
            break
    return results
