"""Evaluations: calls of a model that nobody differentiates, whatever feeds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from harness.watch.bounded import FirstByKey, LatestByKey
from harness.watch.events import Backward, End, Fact, Forward, MetricCall, Pass, PassEnds, Scored, ScoredInGraph
from harness.watch.recogniser import Recogniser
from harness.watch.run.rows import MOST_VALUES, TrainedRows, are_measured, exact_where_it_lies, largest, rows_given
from harness.watch.run.slices import MIN_ROWS

MOST_ROWS = 4096
"""Rows of one evaluation whose identities are kept."""

MOST_CALLS = 256
"""Calls whose rows are kept apart: more parts than a test set is usually cut into."""

_mode_dependent: WeakKeyDictionary[nn.Module, list[nn.Module]] = WeakKeyDictionary()


def mode_dependent(model: nn.Module) -> list[nn.Module]:
    """The modules of a model that behave otherwise in train mode."""
    found = _mode_dependent.get(model)
    if found is None:
        found = _mode_dependent[model] = [module for module in model.modules() if _is_mode_dependent(module)]
    return found


def _is_mode_dependent(module: nn.Module) -> bool:
    return (
        (isinstance(module, _DropoutNd) and module.p > 0)
        or isinstance(module, _BatchNorm)
        or (isinstance(module, nn.RNNBase) and module.dropout > 0 and module.num_layers > 1)
    )


@dataclass(frozen=True)
class FirstCall:
    """How a model was called first in an evaluation."""

    training: bool
    """Whether it was in train mode."""
    active: int
    """Modules that behave otherwise in train mode, and are."""
    gradients: bool
    """Whether its outputs had a graph."""
    where: str | None
    norms: bool = False
    """Whether some of them are batch normalisations, which take what they are given into their statistics."""
    averages: bool = False
    """Whether these take the mean of all batches, as they do while torch.optim.swa_utils.update_bn renews them."""

    @classmethod
    def of(cls, call: Forward) -> FirstCall:
        active = [module for module in mode_dependent(call.model) if module.training]
        momenta = [module.momentum for module in active if isinstance(module, _BatchNorm)]
        averages = bool(momenta) and all(each is None for each in momenta)
        return cls(call.model.training, len(active), call.gradients, call.where, bool(momenta), averages)


class ScoredCall(Fact):
    """Something said how good what a model says is: a loss, its own or the script's, a comparison, a metric.

    The call is one that cannot be differentiated. ``where`` the model was called.
    """

    needs = "evaluation"
    of_run = True
    forward: Forward
    by_row: bool = False
    """Whether it is a loss of each row, which chooses among rows or says which are unusual."""


class Evaluation(Fact):
    """A model was called, nobody differentiated what it said, and that is over. ``where`` is the first call.

    It is the calls of one model in a pass over a DataLoader that trains nothing, or those between two backward passes.
    It closes with the first backward pass after its last call and the end of its pass, or with the run.
    """

    needs = "evaluation"
    of_run = True
    model: int
    """Number of the model in this run."""
    first: FirstCall
    of: Pass | None = None
    """The pass that its batches came from; None where it is of rows of no loader, or within a pass that trains."""
    update: int = 0
    """Updates made when it began."""
    calls: int = 1
    scored: bool = False
    """Whether something said how good the model is: a loss, a comparison with labels, a metric."""
    by_row: bool = False
    """Whether a loss of each row was computed, which chooses among rows or says which are unusual."""
    rows: frozenset[int] = frozenset()
    """The exact identities of rows that were scored, or that a model with active modules was asked about: the first."""
    parts: Sequence[Sequence[int]] = ()
    """The same by call, in their order."""
    asked: Sequence[torch.Tensor] = ()
    """The exact identities of rows of no loader in the other calls of a model that was trained: the first, where they
    lie. Whoever reads them waits for the device."""
    some_twice: bool = False
    """Whether one of these came twice in a call: rows cannot be told apart by their content."""
    values: Sequence[torch.Tensor] = ()
    """The numbers of the first of them, by call."""
    sampled: int = 1
    """The most calls with the same rows."""
    asked_before: bool = False
    """Whether it was asked about the rows of a call once more, and not scored in between."""
    alike: int = 1
    """Evaluations of the same model in the same mode on the same dataset since the latest backward pass, with it."""
    then_in_eval_mode: bool = False
    """Whether the model was called in eval mode after it, before the next backward pass."""
    of_training_loader: bool = False
    """Whether a model was trained over the same loader before it ended."""

    @cached_property
    def measured(self) -> bool:
        """Whether each row has numbers that no other has by chance, however often it comes."""
        alike = len({(each.shape[1], each.device) for each in self.values}) == 1
        return alike and are_measured(torch.cat(list(self.values)))

    @property
    def repeated(self) -> bool:
        """Whether the model was called more than once for a batch."""
        return self.of is not None and self.of.forwards > self.of.batches

    @property
    def is_a_look(self) -> bool:
        """Whether it saw one batch of many."""
        return self.of is not None and self.of.batches < 2 and self.of.planned != 1

    @property
    def renews(self) -> bool:
        """Whether it can only have been for the statistics of batch normalisation."""
        return self.first.norms and not self.scored and (self.first.averages or self.then_in_eval_mode)


@dataclass(eq=False)
class _Call:
    """What a model was asked about in one call."""

    number: int
    rows: torch.Tensor | None
    """Their identities, where they lie."""
    scored: bool = False
    values: torch.Tensor | None = None


@dataclass(eq=False)
class _Open:
    """An evaluation that is not over."""

    model: int
    first: FirstCall
    of: Pass | None
    update: int
    number: int = 0
    """Number of its calls so far that nobody differentiates."""
    calls: list[_Call] = field(default_factory=list)
    """Calls whose rows are kept."""
    kept: int = 0
    """Rows in them."""
    asked: list[torch.Tensor] = field(default_factory=list)
    """Identities of the rows of other calls."""
    scored: bool = False
    by_row: bool = False
    then_in_eval_mode: bool = False

    def is_over(self, passes: Container[Pass]) -> bool:
        """Whether a backward pass ends it, once its own pass is among those that are over."""
        return self.of is None or self.of.trains or self.of in passes

    def keep(self, forward: Forward, *, scored: bool = False, time_first: bool = False) -> None:
        """Keep the rows of a call, as far as there is room, once."""
        if self.calls and self.calls[-1].number == forward.number:
            self.calls[-1].scored |= scored
            return
        given = rows_given(forward, time_first=time_first)
        if len(self.calls) < MOST_CALLS and self.kept < MOST_ROWS:
            call = _Call(forward.number, None, scored)
            if given is not None:
                call.rows = exact_where_it_lies(given)
                if self.kept < MOST_VALUES and given.is_floating_point():  # as many rows as numbers of each
                    call.values = given.detach()[: MOST_VALUES - self.kept].flatten(1)[:, :MOST_VALUES].clone()
                self.kept += len(given)
            self.calls.append(call)

    def note(self, forward: Forward, *, time_first: bool) -> None:
        """Keep which rows a call was about that may never be scored; who acts asks about one."""
        given = rows_given(forward, time_first=time_first)
        room = len(self.asked) < MOST_CALLS and sum(map(len, self.asked)) < MOST_ROWS
        if given is not None and len(given) >= MIN_ROWS and room:
            self.asked.append(exact_where_it_lies(given))

    def rows(self) -> list[tuple[int, ...]]:
        """Row identities of each call that is kept. Whoever asks waits for the device, once."""
        known = [call.rows for call in self.calls if call.rows is not None]
        identities = iter(torch.cat(known).tolist() if len({each.device for each in known}) == 1 else ())
        return [() if call.rows is None else tuple(islice(identities, len(call.rows))) for call in self.calls]

    def ended(self, alike: int, *, of_training_loader: bool) -> Evaluation:
        """What it came to."""
        rows = self.rows()
        asked = Counter(filter(None, rows))
        pairs = zip(self.calls, pairwise(rows), strict=False)
        return Evaluation(
            model=self.model,
            first=self.first,
            of=self.of,
            update=self.update,
            calls=self.number,
            scored=self.scored,
            by_row=self.by_row,
            rows=frozenset().union(*rows),
            parts=rows,
            asked=tuple(self.asked),
            some_twice=any(len(set(each)) < len(each) for each in rows),
            values=[call.values for call in self.calls if call.values is not None],
            sampled=max(asked.values(), default=1),
            asked_before=any(one and one == other and not call.scored for call, (one, other) in pairs),
            alike=alike,
            then_in_eval_mode=self.then_in_eval_mode,
            of_training_loader=of_training_loader,
            where=self.first.where,
        )


class Evaluations(Recogniser):
    """The evaluations of a run, in the order in which they are over."""

    makes = (ScoredCall, Evaluation)

    def begin(self) -> None:
        self._trained_rows = self.fact(TrainedRows)
        self._open = FirstByKey[tuple[int, Pass | None, tuple[str | None, int | None] | None], _Open]()
        self._trained_on: WeakSet[Any] = WeakSet()
        """Loaders of whose batches a model was trained."""
        self._over: WeakKeyDictionary[Pass, bool] = WeakKeyDictionary()
        """Passes that are over, with whether their loader had been trained on by then."""
        self._scored_in_graph = LatestByKey[int, FirstCall]()
        """Forward number to how the call was made: calls that can be differentiated and were scored, since the latest
        backward pass."""

    def on_forward(self, event: Forward) -> None:
        if not event.model.training:
            for each in self._open.values():
                each.then_in_eval_mode |= each.model == self.monitor.number_of(event.model)
        now = None if event.gradients and _may_train(event) else self._of(event)
        if now is None:
            return
        now.number += 1
        if not event.gradients:
            if now.first.active and event.model.training:
                self._keep(now, event)
            if event.loss is not None or _is_a_number(event.output):  # a module that has the loss in it
                self._score(event)
            elif (
                now.of is None
                and now.model in self._trained_rows.of
                and not (now.first.active and event.model.training)
            ):
                now.note(event, time_first=now.model in self._trained_rows.time_first)

    def _of(self, event: Forward, made: FirstCall | None = None) -> _Open | None:
        """The evaluation that a call is a part of; None where there is no room for another. It was ``made`` so."""
        of = None if _may_train(event) or event.batch is None else event.batch.of
        key = self.monitor.number_of(event.model), of, (event.where, _source(event)) if of is None else None
        now = self._open.get(key)
        if now is None and self._open.takes(key):
            now = self._open[key] = _Open(key[0], made or FirstCall.of(event), of, self.monitor.updates_made)
        return now

    def on_scored(self, event: Scored) -> None:
        self._score(event.forward, by_row=event.by_row)

    def on_metric(self, event: MetricCall) -> None:
        for forward in self.monitor.forwards[-1:]:
            self._score(forward)

    def on_scored_in_graph(self, event: ScoredInGraph) -> None:
        number = event.forward.number
        self._scored_in_graph[number] = FirstCall.of(event.forward)
        if event.loss is not None and event.loss.value.requires_grad:
            hook = self.monitor.guarded(self, lambda _: self._is_differentiated(number))
            event.loss.value.register_hook(hook)  # type: ignore[no-untyped-call]

    def _is_differentiated(self, number: int) -> None:
        self._scored_in_graph.pop(number, None)

    def _score(self, forward: Forward, *, by_row: bool = False) -> None:
        now = None if forward.gradients else self._of(forward)
        if now is not None:
            self.tell(ScoredCall(forward=forward, by_row=by_row, where=forward.where))
            for earlier in [forward, *self._before(forward)]:
                if (part := self._of(earlier)) is not None:
                    part.by_row |= by_row
                    part.scored |= not by_row
                    self._keep(part, earlier, scored=True)

    def _keep(self, now: _Open, forward: Forward, *, scored: bool = False) -> None:
        now.keep(forward, scored=scored, time_first=now.model in self._trained_rows.time_first)

    def _before(self, scored: Forward) -> Iterator[Forward]:
        """The calls right before one that is scored of other modules with as many rows: a method of the script's own,
        which is no ``forward``, calls the parts of its model one by one."""
        called, rows = {id(scored.model)}, _length(scored)
        for forward in reversed([other for other in self.monitor.forwards if other.number < scored.number]):
            if (
                forward.gradients
                or forward.batch is not scored.batch
                or id(forward.model) in called
                or _length(forward) != rows
            ):
                return
            called.add(id(forward.model))
            yield forward

    def on_pass_ends(self, event: PassEnds) -> None:
        if event.of.trains:
            self._trained_on.add(event.of.loader)
        self._over[event.of] = event.of.loader in self._trained_on

    def on_backward(self, event: Backward) -> None:
        for forward in event.forwards:
            if forward.number not in event.reached:
                self._never_differentiated(forward)
        self._scored_in_graph.clear()
        self._close()

    def on_end(self, event: End) -> None:
        for forward in self.monitor.forwards:
            self._never_differentiated(forward)
        self._close()

    def _never_differentiated(self, forward: Forward) -> None:
        """Add a call that could have been, if it was scored."""
        call = self._scored_in_graph.get(forward.number)
        now = None if call is None else self._of(forward, call)
        if now is not None:
            now.number += _may_train(forward)  # else it was counted when it was made
            now.scored = True
            self._keep(now, forward, scored=True)

    def _close(self) -> None:
        """Tell of those that are over, and begin anew."""
        over = {key: each for key, each in self._open.items() if each.is_over(self._over)}
        for key in over:
            del self._open[key]
        # Within a pass that trains, the calls before its first backward pass were taken for its own.
        told = [each for each in over.values() if each.of is None or not each.of.trains]
        kinds = Counter(map(_kind, told))
        for evaluation in told:
            of_training_loader = evaluation.of is not None and self._over[evaluation.of]
            self.tell(evaluation.ended(kinds[_kind(evaluation)], of_training_loader=of_training_loader))


def _may_train(event: Forward) -> bool:
    """Whether a call is of no pass, or of one that trains: its outputs may be differentiated, if they can be."""
    return event.batch is None or event.batch.of.trains


def _source(call: Forward) -> int | None:
    """The tensor that the rows of a call are a part of; None of rows that are a tensor of their own.

    One line may be asked about the training rows, and then about others.
    """
    given = largest(call)
    whole = None if given is None else given._base
    # All rows of a batch but for their last token, say, are a part of a tensor of that batch alone.
    parted = given is not None and whole is not None and whole.dim() > 0 and len(whole) != len(given)
    return id(whole) if parted and given is not None and whole is not None and whole.numel() > given.numel() else None


def _length(call: Forward) -> int | None:
    given = largest(call)
    return None if given is None else len(given)


def _kind(of: _Open) -> tuple[object, ...]:
    """What evaluations have in common that are alike."""
    return of.model, of.first.training, None if of.of is None else id(of.of.dataset)


def _is_a_number(output: Any) -> bool:
    first = output[0] if isinstance(output, (tuple, list)) and output else output
    return torch.is_tensor(first) and first.dim() == 0
