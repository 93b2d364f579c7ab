"""Evaluations by hand: rows of no loader that a model in train mode is asked about, and scored on."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import ReferenceType, ref

import torch
from torch import nn

from harness.watch.bounded import FirstByKey, Latest
from harness.watch.bus import Recogniser
from harness.watch.events import Backward, End, Fact, Forward, Scored, ScoredInGraph
from harness.watch.facts.modes import FirstForward, Modes
from harness.watch.facts.row_dimension import largest, row_bytes
from harness.watch.host import together

MIN_ROUNDS = 2
"""Times that a tensor must have been scored, with updates in between: by reasoning, once may be a look."""

MIN_CALLS = 2
"""Calls that score rows in a script that trains nothing: by reasoning, one may be a look."""

MIN_ROUNDS_OF_NEW_ROWS = 3
"""The same for a line that scores other rows each time, as a generator gives them."""

ON_PURPOSE = 3
"""Calls with a tensor without an update in between that are a sample of predictions (Monte Carlo dropout)."""

MOST_TENSORS = 256
"""Tensors that are told from one another: more parts than a test set is usually cut into."""

MOST_ROWS = 4096
"""Rows of an evaluation among which rows to train on are looked for, and of these that are remembered."""


@dataclass(eq=False)
class _Evaluated:
    """A tensor that a model in train mode was given without a graph. Only its owner keeps it alive."""

    of: ReferenceType[torch.Tensor]
    """What it is a view of, or itself."""
    first: FirstForward
    model: int
    place: tuple[torch.Size, tuple[int, ...], int]
    """Shape, strides and offset in it."""
    calls: int = 0
    """Since the latest update."""
    updates: int = -1
    """That had been made at the latest call."""
    rounds: set[int] = field(default_factory=set)
    """Numbers of updates that had been made when it was scored, the first few."""
    left_out: bool = False
    """Whether it is trained on, or called for samples."""


@dataclass(eq=False)
class _ScoringLine:
    """A line that scores rows which are others each time."""

    first: FirstForward
    model: int
    rounds: set[int] = field(default_factory=set)
    """Numbers of updates that had been made, the first few."""
    calls: int = 0
    rows: set[bytes] = field(default_factory=set)
    """Those of the latest calls, as many as are compared."""
    left_out: bool = False


class EvaluatedByHand(Fact):
    """Rows of no loader, which no update is made for, were scored again and again by a model in train mode."""

    of_run = True
    active: int
    """Modules that behave otherwise in train mode, and are."""


class EvaluatedByHandInGraph(Fact):
    """Rows of no loader, which no update is made for, were scored again and again, each time with a graph that no
    backward pass went through. ``where`` the model was called."""

    of_run = True


class EvaluationsByHand(Recogniser):
    """The evaluation in train mode of rows that no update is made for.

    What a script scores once may be a choice of rows, a reward or a teacher's guess; a tensor that stays the same, is
    scored after other updates too and is none to train on is an evaluation. So is a line that scores rows again and
    again none of which is trained on. Whether a graph was recorded makes no difference, if nobody differentiates it.
    """

    makes = (EvaluatedByHand, EvaluatedByHandInGraph)

    def begin(self) -> None:
        self._modes = self.fact(Modes)
        self._seen: dict[tuple[object, ...], _Evaluated] = {}
        self._trained = FirstByKey[int, set[bytes]](16)  # each has some thousand rows
        """Rows of batches that a model was trained on, as far as they were looked at, by its number."""
        self._latest: tuple[int, _Evaluated] | None = None
        """The latest forward, and what it was given."""
        self._given = Latest[tuple[int, int, torch.Tensor]](most=2)
        """The latest forwards since a backward pass: their numbers, those of their models, and what they were given."""
        self._scored = 0
        """The number of the latest that was scored."""
        self._differentiates = False
        """Whether there was a backward pass: a script without one may do nothing but evaluate."""
        self._lines = FirstByKey[tuple[int, str | None], _ScoringLine](16)
        """In train mode, by the model's number and the place."""
        self._in_graph_at = FirstByKey[tuple[int, str | None], _ScoringLine](16)
        """Those of scored forwards that no backward pass went through, though it could have."""
        self._in_graph: set[int] = set()
        """Forwards that can be differentiated and were scored, since the latest backward pass."""
        self._active: dict[int, int] = {}
        """Of those that can be, how many modules were active that behave otherwise in train mode."""

    def on_forward(self, event: Forward) -> None:
        if event.gradients:
            self._active[event.number] = self._count_active(event.model)
        elif event.model.training and (
            not self._differentiates or self.monitor.number_of(event.model) in self._trained
        ):
            self._evaluates(event, self._count_active(event.model))

    def _count_active(self, model: nn.Module) -> int:
        return sum(module.training for module in self._modes.sensitive(model))

    def on_scored_in_graph(self, event: ScoredInGraph) -> None:
        number = event.forward.number
        self._in_graph.add(number)
        if event.loss is not None and event.loss.value.requires_grad:
            hook = self.monitor.guarded(self, lambda _: self._in_graph.discard(number))
            event.loss.value.register_hook(hook)  # type: ignore[no-untyped-call]

    def on_backward(self, event: Backward) -> None:
        self._differentiates = True
        self._given.clear()
        for forward in event.forwards:
            if forward.gradients:
                self._look_at_graph(forward, trained=forward.number in event.reached)
        self._in_graph.clear()
        self._active.clear()

    def _look_at_graph(self, forward: Forward, *, trained: bool) -> None:
        if trained or forward.number not in self._in_graph:
            self._trains(forward)
        elif self.monitor.number_of(forward.model) in self._trained:
            active = self._active.get(forward.number, 0)
            self._keep(forward, self._in_graph_at, FirstForward(active > 0, active, True, forward.where))
            self._evaluates(forward, active)
            self._score(forward)

    def _trains(self, event: Forward) -> None:
        if not self._seen and not self.monitor.is_sampled():
            return
        given = largest(event)
        if given is None or given.dim() < 2:
            return
        if self.monitor.is_sampled():
            number = self.monitor.number_of(event.model)
            if not self._trained.takes(number):
                return
            trained = self._trained.setdefault(number, set())
            if len(trained) < MOST_ROWS:
                trained.update(row_bytes(given))
        for each in self._seen.values():
            each.left_out = each.left_out or each.of() is _base(given)

    def _evaluates(self, event: Forward, active: int) -> None:
        given = largest(event)
        if given is None or given.dim() < 2 or not active:
            return
        self._given.append((event.number, self.monitor.number_of(event.model), given.detach()))
        base = _base(given)
        place = given.shape, given.stride(), int(given.storage_offset())
        key = self.monitor.number_of(event.model), id(base), place
        seen = self._seen.get(key)
        if seen is None or seen.of() is not base:
            self._seen = {each: old for each, old in self._seen.items() if old.of() is not None}
            if len(self._seen) == MOST_TENSORS:
                return
            first = FirstForward(True, active, False, event.where)
            seen = self._seen[key] = _Evaluated(ref(base), first, key[0], place)
        seen.calls = seen.calls + 1 if seen.updates == self.monitor.updates_made else 1
        seen.updates = self.monitor.updates_made
        before = self._latest
        again = before is not None and before[1] is seen and seen.calls > 1 and before[0] != self._scored
        seen.left_out = seen.left_out or seen.calls >= ON_PURPOSE or again  # both are compared
        self._latest = event.number, seen

    def on_scored(self, event: Scored) -> None:
        self._score(event.forward, by_row=event.by_row)

    def _score(self, forward: Forward, *, by_row: bool = False) -> None:
        if self._latest is None or self._latest[0] != forward.number:
            return
        seen = self._latest[1]
        seen.left_out = seen.left_out or self._is_asked_again()
        self._scored = forward.number
        if (line := self._keep(forward, self._lines, seen.first)) is not None:
            line.left_out = line.left_out or by_row or seen.left_out
        if len(seen.rounds) < MIN_ROUNDS:
            seen.rounds.add(self.monitor.updates_made)
            if len(seen.rounds) == MIN_ROUNDS:
                self._tell_of(self._unseen(seen))

    def _is_asked_again(self) -> bool:
        """Whether the model was given the same rows in the call before, moved to a device anew, and was not scored."""
        if len(self._given) < 2:
            return False
        (number, model, before), (_, of, now) = self._given
        if number == self._scored or model != of:
            return False
        return before.shape == now.shape and before.device == now.device and torch.equal(*together(before, now))

    def _keep(
        self, forward: Forward, lines: FirstByKey[tuple[int, str | None], _ScoringLine], first: FirstForward
    ) -> _ScoringLine | None:
        key, given = (self.monitor.number_of(forward.model), forward.where), largest(forward)
        if given is None or given.dim() < 2 or not lines.takes(key):
            return None
        line = lines.setdefault(key, _ScoringLine(first, key[0]))
        if len(line.rounds) < MIN_ROUNDS_OF_NEW_ROWS:
            line.rounds.add(self.monitor.updates_made)
        line.calls += 1
        if len(line.rows) < MOST_ROWS:
            line.rows.update(row_bytes(given))
        return line

    def on_end(self, event: End) -> None:
        """What was scored after the last update is no choice of rows to train on."""
        for forward in self.monitor.forwards:
            if forward.gradients:
                self._look_at_graph(forward, trained=False)
        for line in filter(self._is_evaluation, self._in_graph_at.values()):
            self.tell(EvaluatedByHandInGraph(where=line.first.where))
        for seen in self._seen.values():
            if self.monitor.updates_made in seen.rounds and (first := self._unseen(seen)) is not None:
                self._tell_of(first)
                return
        for line in filter(self._is_evaluation, self._lines.values()):
            self._tell_of(line.first)

    def _is_evaluation(self, line: _ScoringLine) -> bool:
        """Whether it has scored rows again and again, and none of them is trained on."""
        if not self._differentiates:
            return line.calls >= MIN_CALLS and not line.left_out
        trained = self._trained.get(line.model)
        often = len(line.rounds) >= MIN_ROUNDS_OF_NEW_ROWS and not line.left_out
        return often and bool(trained) and trained is not None and trained.isdisjoint(line.rows)

    def _tell_of(self, first: FirstForward | None) -> None:
        if first is not None:
            self.tell(EvaluatedByHand(active=first.active, where=first.where))

    def _unseen(self, seen: _Evaluated) -> FirstForward | None:
        """Where it was evaluated, if no part of the same tensor that was has rows that were trained on."""
        base, trained = seen.of(), self._trained.get(seen.model)
        if seen.left_out or base is None or not trained or seen.place[0][0] < 2:
            return None
        parts = [each for each in self._seen.values() if each.of() is base and each.model == seen.model]
        if any(not trained.isdisjoint(row_bytes(base.detach().as_strided(*each.place), MOST_ROWS)) for each in parts):
            for each in parts:
                each.left_out = True
            return None
        return seen.first


def _base(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor._base is None else tensor._base
