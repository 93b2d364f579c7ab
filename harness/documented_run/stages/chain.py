"""Stage and Run: what a documented step is, and what one leaves for the next."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

import torch

from harness.documented_run.claims import Claim, Invariant
from harness.documented_run.recipe import LOOPS, Recipe
from harness.documented_run.stages.measures.results import Costs, Launched
from harness.documented_run.stages.replays.results import Replays
from harness.errors import CannotTry
from harness.files import no_space
from harness.findings import CheckResult, Finding, NotApplicable, Severity, StageCheck
from harness.launch import alive, of_all_ranks
from harness.torch_objects import own_generators, unchanged_random_state

if TYPE_CHECKING:
    from accelerate import Accelerator
    from datasets import DatasetDict
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler
    from torch.utils.data import DataLoader
    from tqdm.auto import tqdm
    from transformers import DataCollatorWithPadding, PreTrainedModel, PreTrainedTokenizerBase, Trainer
    from transformers.trainer_utils import PredictionOutput

    from harness.documented_run.loops.trainer import Resumed
    from harness.documented_run.stages.trace import Trace, TracedForward

Made = TypeVar("Made")


class NotMadeYet(AttributeError):
    """Raised where something reads what a later stage makes; names that stage."""


class MadeBy(Generic[Made]):
    """An attribute of a run that the named stage sets.

    It has no ``__set__``: once the stage has set the attribute, Python finds it in the run before it looks here.
    """

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def __set_name__(self, owner: type[Outputs], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, run: None, owner: type[Outputs]) -> MadeBy[Made]: ...

    @overload
    def __get__(self, run: Outputs, owner: type[Outputs]) -> Made: ...

    def __get__(self, run: Outputs | None, owner: type[Outputs]) -> MadeBy[Made] | Made:
        if run is None:
            return self
        raise NotMadeYet(f"this run has not reached the stage {self.stage}, which makes {self.name}")


class KeepsEpochs(Protocol):
    """Keeps after each epoch what a training that was killed goes on from.

    :mod:`harness.documented_run.stages.resuming` has them.
    """

    def keep(self, run: Run, loader: DataLoader[Any]) -> None: ...

    def go_on(self, run: Run) -> Resumed | None: ...


class Outputs:
    """What the stages make, each under the document's own name for it."""

    raw_datasets: MadeBy[DatasetDict] = MadeBy("load")
    tokenizer: MadeBy[PreTrainedTokenizerBase] = MadeBy("tokenize")
    tokenize_function: MadeBy[Callable[[dict[str, Any]], Any]] = MadeBy("tokenize")
    tokenized_datasets: MadeBy[DatasetDict] = MadeBy("tokenize")
    data_collator: MadeBy[DataCollatorWithPadding] = MadeBy("tokenize")
    model_datasets: MadeBy[DatasetDict] = MadeBy("columns")
    """The tokenized datasets with the model's columns only, as tensors."""
    train_dataloader: MadeBy[DataLoader[Any]] = MadeBy("batches")
    eval_dataloader: MadeBy[DataLoader[Any]] = MadeBy("batches")
    checkpoint: MadeBy[str] = MadeBy("model")
    model: MadeBy[PreTrainedModel] = MadeBy("model")
    device: MadeBy[torch.device] = MadeBy("model")
    scratch: MadeBy[TemporaryDirectory[str]] = MadeBy("trainer")
    """The folder that Trainer is given; nothing is kept there."""
    first_trainer: MadeBy[Trainer] = MadeBy("trainer")
    """The document's first: default arguments, no metrics. It is looked at and never trained."""
    trainer: MadeBy[Trainer] = MadeBy("trainer")
    optimizer: MadeBy[Optimizer] = MadeBy("optimizer")
    accelerator: MadeBy[Accelerator] = MadeBy("prepare")
    prepared_model: MadeBy[torch.nn.Module] = MadeBy("model")
    """The model as the loop calls it: what Accelerate makes of it, else the model itself."""
    train_dl: MadeBy[DataLoader[Any]] = MadeBy("batches")
    """What the loop goes through: what Accelerate or Trainer make of the dataloader, else the dataloader itself."""
    eval_dl: MadeBy[DataLoader[Any]] = MadeBy("batches")
    num_training_steps: MadeBy[int] = MadeBy("schedule")
    lr_scheduler: MadeBy[LRScheduler] = MadeBy("schedule")
    planned_lrs: MadeBy[list[float]] = MadeBy("train")
    """What the schedule gives: before the first update, then after each."""
    progress_bar: MadeBy[tqdm[Any]] = MadeBy("train")
    training: MadeBy[Trace] = MadeBy("train")
    """What the training loop did."""
    training_seconds: MadeBy[float] = MadeBy("train")
    """How long it took, in this process."""
    evaluation: MadeBy[Trace] = MadeBy("evaluate")
    """What the evaluation loop did."""
    predictions: MadeBy[PredictionOutput] = MadeBy("evaluate")
    """What ``Trainer.predict`` gave for the validation set."""


@dataclass
class Run(Outputs):
    """One pass through the documented steps: what was asked for, what each step made, and what was seen of it."""

    recipe: Recipe
    updates: int | None = None
    """Stop after this number of updates; the schedule stays planned for all of them."""
    installation: bool = False
    """Whether what says something of the installation, and nothing of the run, is done too: costs and launch."""
    keeper: KeepsEpochs | None = None
    """None where nothing is kept."""
    gone_on_after: int = 0
    """The update after which this training goes on where another was killed; 0 where it is from its beginning."""

    loading_messages: list[str] = field(default_factory=list)
    """What transformers logged while it loaded the model."""
    replays: Replays = field(default_factory=Replays)
    """Short trainings from one state: what the stage equivalence compares."""
    costs: Costs = field(default_factory=Costs)
    """What the stage costs measured."""
    epochs: list[dict[str, float]] = field(default_factory=list)
    """The metrics after each epoch."""
    diverged: int | None = None
    """The update whose gradients are not finite, with which the training ended; None where all of them are."""
    metrics: dict[str, float] = field(default_factory=dict)
    """What the evaluation loop's metric computed: by default accuracy and F1, as fractions."""
    configured: Path | None = None
    """The file in which ``accelerate config`` kept its answers; None where there is none."""
    launched: dict[str, Launched] = field(default_factory=dict)
    """How train.py ended, by what started it."""

    @cached_property
    def training_forwards(self) -> list[list[TracedForward]]:
        """The forwards that led to updates, of every rank. Collective: every rank must ask for them."""
        return of_all_ranks([forward for forward in self.training.forwards if forward.gradients])

    @cached_property
    def evaluation_forwards(self) -> list[list[TracedForward]]:
        """The forwards of the evaluation, of every rank. Collective: every rank must ask for them."""
        return of_all_ranks(self.evaluation.forwards)

    @property
    def shortened(self) -> bool:
        """Whether training stops before the planned last update."""
        return self.updates is not None and self.updates < self.num_training_steps

    def whole_run_only(self) -> None:
        """For checks of what only a whole run can show.

        Raises:
            NotApplicable: this run stops early.
        """
        if self.diverged is not None:
            raise NotApplicable(f"ended with update {self.diverged}, whose loss or gradients are not finite")
        if self.shortened:
            raise NotApplicable(f"stopped after {self.updates} of {self.num_training_steps} updates")


Step = Callable[[Run], None]
AnyStep = TypeVar("AnyStep", bound=Step)

STEP_COMPLETES = Invariant("step-completes", "The documented step runs to its end on this installation.")
RECIPE_RESPECTED = Invariant(
    "recipe-respected", "Where the recipe says other than the documents, what it says is what is done."
)


@dataclass(frozen=True)
class StageResult:
    stage: str
    seconds: float
    checks: tuple[CheckResult, ...]

    @property
    def failed(self) -> bool:
        return any(check.failed for check in self.checks)


class Stage:
    """One documented step: it does the step, and carries the checks of what must hold after it.

    ``loops`` are those that have the step; in a run of another loop it is passed over, its checks not applicable. So it
    is where ``passed_over`` gives a reason.
    """

    def __init__(
        self,
        name: str,
        *,
        loops: tuple[str, ...] = LOOPS,
        passed_over: Callable[[Run], str | None] = lambda run: None,
    ) -> None:
        self.name = name
        self.loops = loops
        self.passed_over = passed_over
        self.steps: dict[str, Step] = {}
        self.checks: list[StageCheck[Run]] = []
        self.loops_of: dict[str, tuple[str, ...]] = {}
        """Id of a check to the loops that it is about, where they are not all that have the step."""
        self.stands_for: dict[str, Claim | Invariant] = {STEP_COMPLETES.id: STEP_COMPLETES}
        """Id to what the checks of the stage stand for."""
        self.completes = StageCheck[Run](
            f"{name}::completes", STEP_COMPLETES.id, f"The step {name} runs to its end.", lambda run: iter(())
        )

    def step(self, function: AnyStep) -> AnyStep:
        """Register the documented step, the same for every loop that has no other."""
        self.steps = dict.fromkeys(self.loops, function) | self.steps
        return function

    def step_of(self, *loops: str) -> Callable[[AnyStep], AnyStep]:
        """Register the step as these loops do it."""

        def register(function: AnyStep) -> AnyStep:
            self.steps |= dict.fromkeys(loops, function)
            return function

        return register

    def do(self, run: Run) -> None:
        """The step as the run's loop does it; nothing where the run passes it over."""
        if self.not_for(run) is None:
            self.steps[run.recipe.loop](run)

    def not_for(self, run: Run, step: Step | None = None) -> str | None:
        """Why the run passes the stage over; None where it does not. A step that stands in is always done."""
        return of_another_loop(run, self.loops) or (self.passed_over(run) if step is None else None)

    def check(
        self,
        claim: Claim | Invariant | str,
        *,
        severity: Severity = "error",
        fallback_invariant: Invariant | None = None,
        loops: tuple[str, ...] = LOOPS,
        fault: str = "",
    ) -> Callable[[Callable[[Run], Iterator[Finding]]], StageCheck[Run]]:
        """Register a check: its docstring says what must hold, its name is the id, ``fault`` heads its findings.

        It stands for a claim or an invariant; given the id of an invariant, what must hold is that invariant's
        sentence. Where the claim does not apply to the recipe, neither does the check, unless it stands for an
        invariant ``fallback_invariant``; nor does it to another loop than one of ``loops``.
        """

        def register(function: Callable[[Run], Iterator[Finding]]) -> StageCheck[Run]:
            statement = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
            name = f"{self.name}::{function.__name__.replace('_', '-')}"
            stands_for = Invariant(claim, statement) if isinstance(claim, str) else claim
            check = StageCheck(
                name,
                stands_for.id,
                statement,
                function,
                severity,
                fallback_invariant.id if fallback_invariant else None,
                fault,
            )
            self.stands_for |= {each.id: each for each in (stands_for, fallback_invariant) if each}
            self.checks.append(check)
            self.loops_of[name] = loops
            return check

        return register

    def run(self, run: Run, step: Step | None = None) -> StageResult:
        """Do the step, then look; what the checks draw at random is put back, and the run goes on as if nobody had.

        ``step`` stands in for the documented step: a mutant, or a user's own.

        Raises:
            CannotTry: the step's input is missing or broken.
            Exception: the step's own, where there are several processes: a rank that fails alone must end, since the
                others wait for it.
        """
        began = time.perf_counter()
        if reason := self.not_for(run, step):
            skipped = [check.result("not applicable", reason=reason) for check in (self.completes, *self.checks)]
            return StageResult(self.name, 0.0, tuple(skipped))
        try:
            with without_datasets_cache():
                (step or self.do)(run)
        except CannotTry:
            raise
        except Exception as error:
            if full := no_space(error):
                raise CannotTry(
                    f"the step {self.name} could not be done ({full}); make room, and run it again"
                ) from error
            if run.recipe.processes > 1:
                raise
            crash = Finding(
                expected="no error",
                observed=f"{type(error).__name__}: {error}",
                where=_where(error),
                hint="The documented step fails on these library versions; look there, or at what changed in them.",
            )
            results = [self.completes.result("fails", (crash,))]
        else:
            with unchanged_random_state(*_generators(run)):
                results = [self.completes.result("holds")]
                for check in self.checks:
                    alive()
                    results.append(self.look(check, run))
        return StageResult(self.name, time.perf_counter() - began, tuple(results))

    def look(self, check: StageCheck[Run], run: Run) -> CheckResult:
        """Run one of the stage's checks, as far as its claim applies to the recipe."""
        if reason := of_another_loop(run, self.loops_of[check.id]):
            return check.result("not applicable", reason=reason)
        claim = self.stands_for[check.claim]
        reason = claim.not_applicable(run.recipe) if isinstance(claim, Claim) else None
        if reason is None:
            return check(run)
        if check.fallback_invariant:
            return replace(check, claim=check.fallback_invariant)(run)
        return check.result("not applicable", reason=reason)


def of_another_loop(run: Run, loops: Sequence[str]) -> str | None:
    """Reason that the run's loop is none of these; None where it is one."""
    if run.recipe.loop in loops:
        return None
    return f"about loop {' or '.join(loops)}; this recipe has {run.recipe.loop}"


def _where(error: Exception) -> str | None:
    """FILE:LINE of the innermost frame of the error's traceback."""
    traceback = error.__traceback__
    while traceback and traceback.tb_next:
        traceback = traceback.tb_next
    return f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}" if traceback else None


def _generators(run: Run) -> list[torch.Generator]:
    """The generators of the dataloaders, and of their samplers, that have one of their own."""
    loaders = [run.train_dataloader, run.eval_dataloader] if hasattr(run, "eval_dataloader") else []
    found = [generator for loader in loaders for _, generator in own_generators(loader).values()]
    return list({id(each): each for each in found if each is not None}.values())


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


def run_stages(
    run: Run, stages: Sequence[Stage], *, on_stage: Callable[[StageResult], None] = lambda result: None
) -> list[StageResult]:
    """The stages in order, up to and with the first that fails, on any rank."""
    results: list[StageResult] = []
    for stage in stages:
        results.append(over_all_ranks(stage.run(run)))
        on_stage(results[-1])
        if results[-1].failed:
            break
    return results


def over_all_ranks(result: StageResult) -> StageResult:
    """What the ranks found together: a check fails where it fails on one of them, and the finding says on which."""
    ranks = of_all_ranks(result)
    if len(ranks) == 1:
        return result
    merged = []
    for results in zip(*(each.checks for each in ranks), strict=True):
        found = [(rank, finding) for rank, each in enumerate(results) for finding in each.findings]
        everywhere = all(each.findings == results[0].findings for each in results)
        findings = (
            results[0].findings
            if everywhere
            else tuple(
                replace(finding, where=", ".join(filter(None, (f"rank {rank}", finding.where))))
                for rank, finding in found
            )
        )
        merged.append(replace(results[0], outcome="fails" if found else results[0].outcome, findings=findings))
    return replace(result, checks=tuple(merged))
