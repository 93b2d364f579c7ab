"""The session: one watch of a script, with a monitor for each of its loops.

What comes in are calls of wrapped functions, in any thread; what goes out is the monitor that they belong to::

    monitor = session.current()          # of the loop that this thread is in; None where nobody is to be told
    monitor = session.stepping(optimizer)  # of the loop that the optimizer belongs to
    session.all_findings                 # of all loops, those of one check and line once
    session.lacking                      # check to why it had nothing to judge
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Collection
from weakref import ref

from torch import nn
from torch.optim import Optimizer

from harness.findings import Finding, lines_apart
from harness.torch_objects import is_transformed
from harness.watch.events import End, Event, LossCall, PassEnds, Step
from harness.watch.guards import Guard
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options, UpdateLimitReached, crash_of

MOST_STOPS = 100
"""How often a script may go on after it was ended, before its process is left. More than it has loops."""


class Calling(threading.local):
    """The calls of modules that a thread is in."""

    def __init__(self) -> None:
        self.depth = 0
        """How deep in one another."""
        self.within_own = False
        """Whether the outermost is a module of the script's own, and no pretrained model."""
        self.losses: list[LossCall] = []
        """Calls of loss functions within the outermost."""
        self.parts: dict[int, nn.Module] = {}
        """The modules that were called within the outermost, and itself, by their ids."""


class Session:
    """The monitors of a script: one for each thread that trains.

    Everything belongs to the first, until a thread calls a model while another one that lives trains there already:
    then it is a loop of its own, with what it has made until then. What a loop's helper threads do (fetching batches)
    is the first's too, and so is what the threads of torch's own engine do.
    """

    def __init__(self, options: Options, locator: Locator) -> None:
        self.options, self.locator = options, locator
        self.first = Monitor(options, locator)
        self.monitors = [self.first]
        self.reported: Callable[[list[Finding]], list[Finding]] = list
        """The findings that are wanted and say something of their own, of all."""
        self.closed = False
        """Whether the watch is over: what was made meanwhile may still call its instruments."""
        self.broken: str | None = None
        """How the watch itself failed, where it did in what nearly all checks need; the script goes on without it."""
        self._lost: list[tuple[Collection[type[Event]], str]] = []
        """The events of instruments that have failed, and how."""
        self.leaving: Callable[[int], int] | None = None
        """Called where the process is left by os._exit, with the exit status; gives the one to leave it with."""
        self._stops = 0
        """How often the script was ended after it had been ended."""
        self._trains: threading.Thread | None = None
        """The thread whose loop is the first."""
        self._own = threading.local()
        self.calling = Calling()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        """What a notebook shows: the findings as a terminal shows them, and how much was looked at."""
        found = self.reported(self.all_findings)
        lines = [f"{len(found) or 'nothing'} found in {self.updates_made} updates; {len(self.looked)} checks looked"]
        return "\n".join([*lines, *lines_apart(found)])

    def current(self) -> Monitor | None:
        """The monitor of this thread; None where nobody is to be told what happens."""
        monitor: Monitor = getattr(self._own, "monitor", self.first)
        over = self.closed or monitor.over
        return None if over or monitor.suspended.depth or is_transformed() else monitor

    def calling_a_model(self) -> Monitor | None:
        """The monitor of this thread, which shows by its call that it may be a loop of its own."""
        if not self.closed and not hasattr(self._own, "monitor"):
            with self._lock:
                self._own.monitor = self._assigned(threading.get_ident())
        return self.current()

    def _assigned(self, thread: int) -> Monitor:
        known = {each.ident: each for each in threading.enumerate() if not isinstance(each, threading._DummyThread)}
        if thread not in known:
            return self.first  # of torch's engine, which nobody started as a thread of Python's
        for ended in [each for each in self.monitors[1:] if each.thread not in known]:
            ended.let_go()
        if self._trains is None or not self._trains.is_alive() or self._trains is known[thread]:
            self._trains = known[thread]
            return self.first
        other = Monitor(self.options, self.locator)
        other.thread = thread
        for kinds, why in self._lost:
            other.lose(kinds, why)
        self.monitors.append(other)
        self.first.hand_over(other, thread)
        return other

    def stop_at_limit(self) -> None:
        """End a script that went on after it was ended, as one with a bare ``except:`` does.

        Raises:
            UpdateLimitReached: the updates that were asked for have been made.
        """
        if not self.closed and self.options.updates is not None and any(each.over for each in self.monitors):
            for each in self.monitors:
                each.cut_short()
            self._stops += 1
            if self._stops > MOST_STOPS and self.leaving is not None:
                sys.stdout.flush()
                os._exit(self.leaving(0))
            raise UpdateLimitReached

    def guard(self, *tells: type[Event]) -> Guard:
        """The guard of an instrument that tells these events."""
        known = ref(self)  # hooks on tensors hold their guard, and must not hold what the session holds

        def fails(error: Exception) -> None:
            if (session := known()) is not None:
                session.fails(error, tells)

        return Guard(fails)

    def wants(self, kind: type[Event]) -> bool:
        """Whether anybody is told of such events."""
        return any(monitor.bus.wants(kind) for monitor in self.monitors)

    def fails(self, error: Exception, tells: Collection[type[Event]] = (Event,)) -> None:
        """An instrument has failed, which told these events; by default all. Who needs them is left out, and named;
        everybody else goes on."""
        why = crash_of(error, self.updates_made + 1)
        self._lost.append((tells, why))
        lost = {kind for monitor in self.monitors for kind in monitor.lose(tells, why)}
        if all(why not in monitor.crashed.values() for monitor in self.monitors):
            self.first.note(why)  # no check needs it, or those that do could not look already
        if Step in lost:
            self.broken = self.broken or why
            for monitor in self.monitors:
                monitor.cut_short()

    def stepping(self, optimizer: Optimizer) -> Monitor | None:
        """The monitor of this thread, which steps the optimizer: whoever made it, it belongs to this loop."""
        monitor = self.current()
        if monitor is not None and monitor is not self.first and optimizer in self.first.optimizers:
            self.first.hand_over_optimizer(optimizer, monitor)
        return monitor

    def ends(self) -> None:
        """All loops are over; what a thread that Python does not wait for goes on with is not judged."""
        self.closed = True
        for monitor in self.monitors:
            with self.guard(PassEnds, End):
                monitor.ends()

    @property
    def findings(self) -> dict[str, Finding]:
        """Check id to its first finding."""
        return {finding.check: finding for finding in reversed(self.all_findings)}

    @property
    def all_findings(self) -> list[Finding]:
        """Findings of all loops, the first of each check on each line."""
        found: dict[tuple[str, str | None], Finding] = {}
        for monitor in self.monitors:
            for finding in monitor.findings:
                found.setdefault((finding.check, finding.where), finding)
        return list(found.values())

    @property
    def notes(self) -> list[str]:
        return list(dict.fromkeys(note for monitor in self.monitors for note in monitor.notes))

    @property
    def crashed(self) -> dict[str, str]:
        """Checks that could not look, and why: they failed themselves, or what they need of the watch did."""
        found = {check: how for monitor in self.monitors for check, how in sorted(monitor.crashed.items())}
        looked = self.looked
        for monitor in self.monitors:
            for check in monitor.checks:
                if check.id not in looked and (why := monitor.bus.misses(check)) is not None:
                    found.setdefault(check.id, why)
        return found

    @property
    def looked(self) -> dict[str, str]:
        """Checks that judged something, and what that was, where they say so."""
        return {check.id: check.looked_at for monitor in self.monitors for check in monitor.checks if check.looked}

    @property
    def lacking(self) -> dict[str, str]:
        """Checks that had nothing to look at, and why."""
        looked, checks = self.looked, [check for monitor in self.monitors for check in monitor.checks]
        return {check.id: check.lacks() for check in checks if check.id not in looked}

    @property
    def trained(self) -> bool:
        """Whether any optimizer made a step, or the script its own updates."""
        return any(monitor.stepped or monitor.updated_by_hand for monitor in self.monitors)

    @property
    def updates_made(self) -> int:
        return sum(monitor.updates_made for monitor in self.monitors)
