"""Windows: a production run is watched a few updates at a time, at a cost that is a small share of its time.

The first updates are watched from the beginning; from then on a few updates now and then. In between nothing of the
watch is there but a counter: torch calls it after each optimizer step.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any
from weakref import ref

from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

from harness import catalogue
from harness.errors import CannotTry
from harness.findings import Finding, first_line
from harness.settings import wanted
from harness.torch_objects import anything_compiled, is_distributed
from harness.watch import by_reason, checks_of, reported
from harness.watch.check import Check
from harness.watch.events import Backward, Forward, PassBegins, PassEnds, Save, StateAsked, Step
from harness.watch.instrument import instrumented, is_in_use, optimizers
from harness.watch.locate import Locator
from harness.watch.monitor import ManualUpdate, OptimizerSeen, Options
from harness.watch.recogniser import Recogniser
from harness.watch.session import Session

FIRST_WINDOW = 16
"""Updates of the first window. Twice the updates in which a check looks for what never happens."""

LATER = 8
"""Updates of each window after it. More than any check of them needs."""

MIN_APART = 64
"""Updates between two windows, however little they cost."""

UNWATCHED_UPDATES = 32
"""Unwatched updates after a window that its updates are compared with."""

OTHERS = 64
"""Steps of other optimizers without one of the optimizer that is counted, after which another one is."""

MOST_PASSES = 1024
"""Backward passes without an optimizer step, after which none is expected any more. More than anybody accumulates."""

OF_ENGINES = ("deepspeed", "megatron", "torch.distributed.fsdp")
"""Packages whose models keep their weights spread over processes, and update them in their own way."""

logger = logging.getLogger("harness")


@dataclass
class Cost:
    """What the windows have cost, in seconds, and when the next may begin.

    A window costs the time of putting the instruments on and taking them off, and of each of its updates what that
    took longer than the median of the unwatched updates after it; one that was faster saves nothing. Of an update with
    something else in it (an evaluation, a checkpoint, the beginning of an epoch) it is the same share as of the
    window's others. The next window may begin when all windows, and one more that costs as much as the dearest, are
    no more than ``share`` of the time since the beginning.
    """

    share: float
    began: float
    spent: float = 0.0
    latest: float = 0.0
    dearest: float = 0.0
    own: float = 0.0
    """Seconds that opening and closing the latest window took."""
    watched: list[tuple[float, bool]] = field(default_factory=list)
    """Seconds of its updates, and whether there was something else in each."""
    unwatched: deque[float] = field(default_factory=lambda: deque(maxlen=UNWATCHED_UPDATES))
    """Seconds of the updates after it."""

    def settle(self) -> float:
        """Count the window that is over, and say from when on there may be another."""
        usual = median(self.unwatched)
        alone = [seconds for seconds, mixed in self.watched if not mixed] or [seconds for seconds, _ in self.watched]
        longer = sum(max(0.0, seconds - usual) for seconds in alone)
        mixed = sum(seconds for seconds, _ in self.watched) - sum(alone)
        self.latest = self.own + longer + mixed * longer / max(sum(alone), 1e-9)
        self.spent += self.latest
        self.dearest = max(self.dearest, self.latest)
        self.own = 0.0
        self.watched.clear()
        self.unwatched.clear()
        return self.began + (self.spent + self.dearest) / self.share


class BesidesUpdates(Recogniser):
    """Whether the loop did something else since it was last asked, and whether its model can be watched."""

    def begin(self) -> None:
        self.seen = False
        self.unwatchable: str | None = None
        """Why the model cannot be watched."""
        self.passes = 0
        """Backward passes since the latest step."""
        self.gives_up: Callable[[str], None] = lambda why: None

    def take(self) -> bool:
        seen, self.seen = self.seen, False
        return seen

    def on_backward(self, event: Backward) -> None:
        self.passes += 1
        if self.passes > MOST_PASSES:  # no hook of ours is called that could close the window
            self.gives_up(f"{MOST_PASSES} backward passes without a step of an optimizer of torch's")

    def on_step(self, event: Step) -> None:
        if not isinstance(event.optimizer, ManualUpdate):
            self.passes = 0

    def on_pass_begins(self, event: PassBegins) -> None:
        self.seen = True

    def on_pass_ends(self, event: PassEnds) -> None:
        self.seen = True

    def on_state_asked(self, event: StateAsked) -> None:
        self.seen = True

    def on_save(self, event: Save) -> None:
        self.seen = True

    def on_forward(self, event: Forward) -> None:
        self.seen = self.seen or not event.gradients
        if self.unwatchable is None and self.monitor.number_of(event.model) == 1:
            self.unwatchable = _unwatchable(event.model)
            if self.unwatchable is not None:
                self.monitor.leave()  # before any check has touched a tensor


class Windows:
    """Watches a run in windows, from :meth:`begin` to :meth:`end`.

    Whatever fails in here ends the watching, with one line in the log, and never the run.

    Args:
        tell: called with each finding, once for each check.
        share: of the run's time that watching may cost.
        select: run these checks only, by id or family; of them those that can judge windows.
        ignore: checks that are not wanted.
        apart: updates between two windows, in the place of what the cost says.

    Raises:
        CannotTry: a check that does not exist, none that can judge windows, or a share that is not between 0 and 1.
    """

    def __init__(
        self,
        tell: Callable[[Finding], None],
        *,
        share: float = 0.01,
        select: Collection[str] = (),
        ignore: Collection[str] = (),
        apart: int | None = None,
    ) -> None:
        if not 0 < share < 1:
            raise CannotTry(f"the share of time for watching must be between 0 and 1, such as 0.01; found {share}")
        chosen = wanted(None, select, ignore)
        self._first = checks_of(chosen.selected & judging("first", "all"))
        self._later = checks_of(chosen.selected & judging("all"))
        if not self._first:
            raise CannotTry(
                "none of the selected checks can judge a run in windows; docs/checks says of each family which can"
            )
        self._tell, self._ignored, self._share, self._apart = tell, chosen.ignored, share, apart
        self.findings: dict[str, Finding] = {}
        """Check id to its first finding."""
        self.updates = 0
        """Made since the run began."""
        self.windows = 0
        """Opened until now."""
        self.cost = Cost(share, 0.0)
        self._locator = Locator()
        self._handles: list[RemovableHandle] = []
        self._open = ExitStack()
        """Takes the instruments off."""
        self._session: Session | None = None
        """Session of the open window."""
        self._is_first = False
        """Whether the loop is seen from its beginning in it."""
        self._hooks: tuple[optimizers.StepHook, optimizers.StepHook] | None = None
        self._besides: BesidesUpdates | None = None
        self._failed: set[str] = set()
        """Checks that failed themselves, which are left out of later windows."""
        self._counted: Callable[[], Optimizer | None] = _no_optimizer
        """A weak reference to the optimizer whose steps are the updates."""
        self._others = 0
        """Steps of other optimizers since its latest."""
        self._stepping = False
        self._since = 0
        """Updates since the latest window."""
        self._next = float("inf")
        """When the next window may begin."""
        self._last = 0.0

    @property
    def is_watching(self) -> bool:
        """Whether it goes on: false before it has begun, and when it has ended or given up."""
        return bool(self._handles) and self._since >= 0

    def begin(self, updates: int = 0) -> None:
        """Begin with the first window; ``updates`` were made before."""
        self.end()
        self.updates, self.windows = updates, 0
        now = time.perf_counter()
        self.cost = Cost(self._share, began=now)
        self._last, self._since, self._next = now, 0, float("inf")
        try:
            self._handles = [
                register_optimizer_step_pre_hook(self._step_begins),
                register_optimizer_step_post_hook(self._step_ended),
            ]
            self._begin_window(first=True)
        except Exception as error:  # noqa: BLE001 - the run never pays for it
            self._give_up(first_line(error))

    def end(self) -> None:
        """Everything is as it was; what the window that is open has found is told."""
        try:
            if self._session is not None:
                self._end_window()
        except Exception as error:  # noqa: BLE001 - the run never pays for it
            self._give_up(first_line(error))
        self._let_go()

    def _let_go(self) -> None:
        while self._handles:
            self._handles.pop().remove()
        self._open.close()
        self._session = self._hooks = self._besides = None

    def _give_up(self, why: str) -> None:
        logger.warning("harness stops watching this run: %s", why)
        # No hook can be removed in a hook: those that are left do nothing.
        with suppress(Exception):  # what could not be put back stays as it is, and does nothing
            self._open.close()
        self._session = self._hooks = self._besides = None
        self._next = float("inf")
        self._since = -1

    # torch's hooks on the steps of all optimizers

    def _step_begins(self, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        self._stepping = True
        return None if self._hooks is None else self._hooks[0](optimizer, args, kwargs)

    def _step_ended(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self._since < 0:
            return  # it gave up
        try:
            if self._hooks is not None:
                self._hooks[1](optimizer, args, kwargs)
            # A class that calls its base's step() ends twice.
            if self._stepping and self._is_counted(optimizer):
                self._update_made(optimizer)
            self._stepping = False
        except Exception as error:  # noqa: BLE001 - the run never pays for it
            self._give_up(f"the watch itself crashed: {first_line(error)}")

    def _is_counted(self, optimizer: Optimizer) -> bool:
        counted = self._counted()
        if counted is optimizer:
            self._others = 0
            return True
        self._others += 1
        if counted is None or self._others > OTHERS:
            self._counted, self._others = ref(optimizer), 0
            return True
        return False

    def _update_made(self, optimizer: Optimizer) -> None:
        now = time.perf_counter()
        took = now - self._last
        self.updates += 1
        self._since += 1
        if self._session is not None:
            self._watched(took)
        else:
            self._unwatched(took, now)
        now = time.perf_counter() if self._session is not None or self._since == 0 else now
        self._last = now

    # Windows

    def _unwatched(self, took: float, now: float) -> None:
        """An update between two windows."""
        if self._since <= UNWATCHED_UPDATES:
            self.cost.unwatched.append(took)
            if self._since == UNWATCHED_UPDATES:
                self._next = self.cost.settle()
        if (self._since >= MIN_APART and now >= self._next) if self._apart is None else self._since >= self._apart:
            self._begin_window(first=False)

    def _begin_window(self, *, first: bool) -> None:
        began = time.perf_counter()
        wanted = self._first if first else self._later
        checks = tuple(each for each in wanted if getattr(each, "id", None) not in self._failed)
        if not checks:
            return
        if anything_compiled():
            self._give_up("torch.compile is in use, and watching would trigger a new compilation")
            return
        if is_in_use():
            self._since = 0  # harness check, or a watch of the script's own, looks already
            return
        session = Session(Options(checks, every=1, before=self.updates), self._locator)
        self._besides = session.first.fact(BesidesUpdates)
        self._besides.gives_up = self._give_up
        counted = None if first else self._counted()
        if counted is not None:  # what has an optimizer makes no updates by hand, for which operators are replaced
            session.first.optimizers[counted] = OptimizerSeen()
        self._open.enter_context(instrumented(session, hooked=False, operators=first))
        self._session, self._hooks, self._is_first = session, optimizers.step_hooks(session), first
        self.windows += 1
        self._since = 0
        self.cost.own += time.perf_counter() - began

    def _watched(self, took: float) -> None:
        """An update of the window that is open."""
        assert self._besides is not None
        besides = self._besides.take()
        if self._apart is None:
            self.cost.watched.append((took, besides))
        if self._besides.unwatchable is not None:
            self._give_up(self._besides.unwatchable)
        elif self._since >= (FIRST_WINDOW if self._is_first else LATER):
            began = time.perf_counter()
            self._end_window()
            self.cost.own += time.perf_counter() - began

    def _end_window(self) -> None:
        session = self._session
        assert session is not None
        self._session = self._hooks = self._besides = None
        self._since = 0
        self._open.close()
        for monitor in session.monitors:
            monitor.cut_short()
        if self._is_first and session.trained:
            session.ends()  # what never happened is judged in the updates that were seen from the beginning
        session.closed = True
        for monitor in session.monitors:
            monitor.let_go()
        if session.broken is None:
            for failed, why in by_reason(session.crashed):
                logger.warning("harness watches this run without %s: %s", failed, why)
        self._failed |= set(session.crashed)
        for finding in reported(session.all_findings, self._ignored):
            if finding.check not in self.findings:
                self.findings[finding.check] = finding
                self._tell(finding)
        if session.broken is not None:
            self._give_up(session.broken)


def judging(*which: str) -> set[str]:
    """The ids of the checks that can judge a run in the first window, or in all."""
    return {
        name for name, check in catalogue.checks().items() if issubclass(check, Check) and check.in_windows in which
    }


def _no_optimizer() -> None:
    """Stand in for a weak reference, as a function that can be pickled: launchers pickle callbacks."""


def _unwatchable(model: nn.Module) -> str | None:
    """Why a model cannot be watched on one of several processes."""
    if type(model).__module__.startswith(OF_ENGINES):
        return f"{type(model).__name__} has weights that are sharded over processes"
    if any(is_distributed(p) for p in model.parameters()):
        return "its weights are sharded over processes (DTensor)"
    return None
