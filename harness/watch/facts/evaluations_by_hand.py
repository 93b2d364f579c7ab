"""Evaluations by hand: tensors of no loader that a model in train mode is asked about, and scored on."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import ReferenceType, WeakKeyDictionary, ref

import torch
from torch import nn

from harness.watch.bus import Recogniser
from harness.watch.events import End, Fact, Forward, Scored
from harness.watch.facts.modes import FirstForward, Modes
from harness.watch.facts.row_dimension import largest, row_bytes

MIN_ROUNDS = 2
"""Times that a tensor must have been scored, with updates in between: by reasoning, once may be a look."""

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
    model: ReferenceType[nn.Module]
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


class EvaluatedByHand(Fact):
    """Rows of no loader, which no update is made for, were scored again and again by a model in train mode."""

    of_run = True
    active: int
    """Modules that behave otherwise in train mode, and are."""


class EvaluationsByHand(Recogniser):
    """The evaluation in train mode of rows that no update is made for.

    What a script scores once may be a choice of rows, a reward or a teacher's guess; a tensor that stays the same, is
    scored after other updates too and is none to train on is an evaluation.
    """

    makes = (EvaluatedByHand,)

    def begin(self) -> None:
        self._modes = self.fact(Modes)
        self._seen: dict[tuple[object, ...], _Evaluated] = {}
        self._trained: WeakKeyDictionary[nn.Module, set[bytes]] = WeakKeyDictionary()
        """Rows of batches that a model was trained on, as far as they were looked at."""
        self._latest: tuple[int, _Evaluated] | None = None
        """The latest forward, and what it was given."""
        self._scored = 0
        """The number of the latest that was scored."""

    def on_forward(self, event: Forward) -> None:
        if event.gradients:
            self._trains(event)
        elif event.model.training and event.model in self._trained:
            self._evaluates(event)

    def _trains(self, event: Forward) -> None:
        if not self._seen and not self.monitor.is_sampled():
            return
        given = largest(event)
        if given is None or given.dim() < 2 or not self._modes.sensitive(event.model):
            return
        if self.monitor.is_sampled():
            trained = self._trained.setdefault(event.model, set())
            if len(trained) < MOST_ROWS:
                trained.update(row_bytes(given))
        for each in self._seen.values():
            each.left_out = each.left_out or each.of() is _base(given)

    def _evaluates(self, event: Forward) -> None:
        given = largest(event)
        active = sum(module.training for module in self._modes.sensitive(event.model))
        if given is None or given.dim() < 2 or not active:
            return
        base = _base(given)
        place = given.shape, given.stride(), int(given.storage_offset())
        key = self.monitor.number_of(event.model), id(base), place
        seen = self._seen.get(key)
        if seen is None or seen.of() is not base:
            self._seen = {each: old for each, old in self._seen.items() if old.of() is not None}
            if len(self._seen) == MOST_TENSORS:
                return
            first = FirstForward(True, active, False, event.where)
            seen = self._seen[key] = _Evaluated(ref(base), first, ref(event.model), place)
        seen.calls = seen.calls + 1 if seen.updates == self.monitor.updates_made else 1
        seen.updates = self.monitor.updates_made
        before = self._latest
        again = before is not None and before[1] is seen and seen.calls > 1 and before[0] != self._scored
        seen.left_out = seen.left_out or seen.calls >= ON_PURPOSE or again  # both are compared
        self._latest = event.number, seen

    def on_scored(self, event: Scored) -> None:
        if self._latest is None or self._latest[0] != event.forward.number:
            return
        seen = self._latest[1]
        self._scored = event.forward.number
        if len(seen.rounds) < MIN_ROUNDS:
            seen.rounds.add(self.monitor.updates_made)
            if len(seen.rounds) == MIN_ROUNDS:
                self._tell_of(self._unseen(seen))

    def on_end(self, event: End) -> None:
        """What was scored after the last update is no choice of rows to train on."""
        for seen in self._seen.values():
            if self.monitor.updates_made in seen.rounds and (first := self._unseen(seen)) is not None:
                self._tell_of(first)
                return

    def _tell_of(self, first: FirstForward | None) -> None:
        if first is not None:
            self.tell(EvaluatedByHand(active=first.active, where=first.where))

    def _unseen(self, seen: _Evaluated) -> FirstForward | None:
        """Where it was evaluated, if no part of the same tensor that was has rows that were trained on."""
        base, model = seen.of(), seen.model()
        trained = self._trained.get(model) if model is not None else None
        if seen.left_out or base is None or not trained or seen.place[0][0] < 2:
            return None
        parts = [each for each in self._seen.values() if each.of() is base and each.model() is model]
        if any(not trained.isdisjoint(row_bytes(base.detach().as_strided(*each.place), MOST_ROWS)) for each in parts):
            for each in parts:
                each.left_out = True
            return None
        return seen.first


def _base(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor._base is None else tensor._base
