"""Rows that a script takes from tensors itself: those never reached, and those held out that were trained on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

import torch

from harness.torch_objects import is_dense
from harness.watch.bounded import MOST, FirstByKey
from harness.watch.bus import Recogniser
from harness.watch.checks.rows.observations.rows_by_hand import FRAMES, RowsByHand
from harness.watch.events import BackwardBegins, End, Fact, Forward
from harness.watch.run.evaluations import Evaluation, ScoredCall
from harness.watch.run.rows import KNOWN, MOST_ROWS, TrainedRows, exact, largest, rows_given

MIN_EPOCHS = 3
"""Times that the first row was trained on. Half or double of it changes verdicts (scripts/records/margins.json)."""

MIN_UPDATES = 3
"""Updates in which rows that are held out had a gradient."""

MIN_SHARE = 0.5
"""Smallest share of the rows that are held out that must have been trained on. Copies of a few rows are in many
datasets. Half or double of it changes verdicts (scripts/records/margins.json)."""

MIN_ROWS = 8

MAX_NOISY_LABELS = 0.25
"""Largest share of rows with another label that may be noise: of two classes half are right by chance."""

MOST_HASHED = 200_000
"""Rows of a tensor among which those of a batch are looked for. By reasoning, what is worth its time."""


class SlicesTrained(Fact):
    """A run is over that trained on slices of a tensor, several times from its first row on. ``where``: the first."""

    needs = "batches that are slices of one tensor"
    of_run = True
    rows: int
    """Rows of the tensor."""
    left: int = 0
    """Rows at its end that were never trained on, where all before them were, and that were not held out."""
    epochs: int = 0
    """Times that the first row was trained on."""
    longest: int = 0
    """Rows of the largest batch."""


class LabelsSliced(Fact):
    """The labels of a loss are a slice of a tensor, and a model was given rows of another one of as many rows, by their
    index. ``where`` the loss is computed."""

    in_windows = "all"
    rows: int
    wrong: int = 0
    """Rows with another label than the one that is in their place."""
    in_a_row: int = 0
    """Losses, one after the other, of which more than MAX_NOISY_LABELS of the rows have."""


class HeldOutRows(Fact):
    """Rows that the script calls test, validation or held out were looked for among those that were trained on."""

    needs = "rows without a DataLoader that the script calls test, validation or held out"
    name: str = ""
    """What the script calls them, where most of them were trained on."""
    rows: int = 0
    both: int = 0
    """Number of these rows that were in the loss."""
    trained: int = 0
    """All rows that were in the loss."""
    pseudo: bool = False
    """Whether the labels of these rows in the loss are what a model said of them before, as pseudo-labels are."""


@dataclass(eq=False)
class _Visited:
    """Rows of one tensor that a model was trained on."""

    rows: torch.Tensor
    """A mask."""
    where: str | None
    epochs: int = 0
    longest: int = 0
    """Rows of the largest batch."""


class SlicesOfTensors(Recogniser):
    makes = (SlicesTrained,)

    def begin(self) -> None:
        self._rows = self.fact(RowsByHand)
        self._visited: dict[tuple[int, int], _Visited] = {}
        """Rows visited by the model and the tensor."""
        self._evaluated: dict[int, torch.Tensor] = {}

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.inside_step or event.batch is not None:
            return
        labels = [each for call in event.losses if (each := self._rows.slice_of(call.target)) is not None]
        for forward in event.forwards:
            for tensor in forward.tensors.values() if forward.gradients else ():
                given = self._rows.slice_of(tensor)
                # A language model's labels are slices of its inputs' tensor.
                beside = [each for each in labels if given is not None and each.of == given.of]
                if given is None or not beside or any(each.source == given.source for each in beside):
                    continue
                key = self.monitor.number_of(forward.model), given.source
                seen = self._visited.get(key)
                if seen is None or len(seen.rows) != given.of:
                    seen = self._visited[key] = _Visited(
                        torch.zeros(given.of, dtype=torch.bool, device="cpu"), forward.where
                    )
                seen.rows[given.first : given.first + given.rows] = True
                seen.epochs += given.first == 0
                seen.longest = max(seen.longest, given.rows)

    def on_scored(self, fact: ScoredCall) -> None:
        for tensor in fact.forward.tensors.values():
            given = self._rows.slice_of(tensor)
            if given is not None:
                mask = self._evaluated.setdefault(given.source, torch.zeros(given.of, dtype=torch.bool, device="cpu"))
                mask[given.first : given.first + given.rows] = True

    def on_end(self, event: End) -> None:
        for (_, source), seen in self._visited.items() if event.at.complete else ():
            if seen.epochs < MIN_EPOCHS:
                continue
            last, rows = int(seen.rows.nonzero().max()), len(seen.rows)
            evaluated = self._evaluated.get(source)
            scored = evaluated is not None and bool(evaluated[last + 1 :].any()) and not bool(evaluated.all())
            left = rows - last - 1 if bool(seen.rows[: last + 1].all()) and not scored else 0
            epochs, longest = seen.epochs, seen.longest
            self.tell(SlicesTrained(rows=rows, left=left, epochs=epochs, longest=longest, where=seen.where))


class LabelsOfSlices(Recogniser):
    makes = (LabelsSliced,)

    def begin(self) -> None:
        self._rows = self.fact(RowsByHand)
        self._places: tuple[ref[torch.Tensor], dict[int, int]] | None = None
        """Tensor that batches are rows of, and where each row lies."""
        self._in_a_row = 0

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.batch is not None or event.inside_step or not event.at.sampled or len(event.losses) != 1:
            return
        (call,), forwards = event.losses, [each for each in event.forwards if each.gradients]
        labels, whole = self._rows.slice_of(call.target), call.target._base
        given = largest(forwards[0]) if len(forwards) == 1 else None
        if labels is None or whole is None or given is None or given.dim() < 2 or len(given) != labels.rows:
            return
        if labels.rows < MIN_ROWS or labels.rows == labels.of or self._rows.slice_of(given) is not None:
            return
        places = self._places_of(given, labels.of)
        if places is not None:
            own = whole.detach()[torch.tensor(places, device=whole.device)].reshape(call.target.shape)
            wrong = int((own != call.target.detach()).reshape(labels.rows, -1).any(1).sum())
            self._in_a_row = self._in_a_row + 1 if wrong > MAX_NOISY_LABELS * labels.rows else 0
            self.tell(LabelsSliced(rows=labels.rows, wrong=wrong, in_a_row=self._in_a_row, where=call.where))

    def _places_of(self, given: torch.Tensor, rows: int) -> list[int] | None:
        """Where the rows of a batch lie in a tensor of the script with so many rows; None where they are in none."""
        keys = exact(given)
        for known in (self._places, None):
            self._places = known or self._hashed(given, rows)
            whole, places = self._places or (lambda: None, {})
            found = [places.get(key, 0) for key in keys]
            # Its rows may have been put into another order meanwhile.
            if (tensor := whole()) is not None and exact(tensor.detach()[torch.tensor(found, device="cpu")]) == keys:
                return found if len(set(found)) > len(found) / 2 else None
        return None

    def _hashed(self, given: torch.Tensor, rows: int) -> tuple[ref[torch.Tensor], dict[int, int]] | None:
        if rows > MOST_HASHED:
            return None
        first = exact(given[:1])[0]
        for variables in self.monitor.locator.variables(FRAMES):
            for value in variables.values():
                whole = value if not torch.is_tensor(value) or value._base is None else value._base
                if not torch.is_tensor(whole) or whole.dtype != given.dtype or len(whole.shape) != given.dim():
                    continue
                if len(whole) == rows and whole.shape[1:] == given.shape[1:]:
                    places = {key: place for place, key in enumerate(exact(whole))}
                    if first in places and len(places) == rows:
                        return ref(whole), places
        return None


@dataclass(eq=False)
class _Named:
    """What the script calls test, validation or held out, where it scores a model."""

    where: str | None
    """Where it scores."""
    rows: dict[str, list[int]] = field(default_factory=dict)
    """Name to the identities of the first rows of what holds rows."""
    places: dict[str, int] = field(default_factory=dict)
    """Name to the number of rows that a mask or a list of their numbers chooses."""

    def name_of(self, evaluated: Collection[int]) -> str | None:
        """What the script calls the rows that were evaluated; None where no name is theirs."""
        for name, rows in self.rows.items():
            if 2 * len(set(rows).intersection(evaluated)) > len(rows):
                return name
        return next((name for name, size in self.places.items() if size == len(evaluated)), None)


class RowsHeldOut(Recogniser):
    makes = (HeldOutRows,)

    def begin(self) -> None:
        self._rows, self._trained = self.fact(RowsByHand), self.fact(TrainedRows)
        self._updates: dict[str, int] = {}
        """Name of a mask to the updates in which its rows had a gradient."""
        self._named = FirstByKey[int, _Named]()
        """Model number to the names in the evaluation that is not over."""
        self._labels: dict[int, int] = {}
        """Row to its label in the loss."""
        self._said: dict[int, int] = {}
        """Row to the class that a model took it for, without a gradient, before any loss had a label of it."""
        self._in_vain = 0
        """Calls in a row of which nothing was new: an evaluation asks about the same rows after each epoch."""

    def on_forward(self, event: Forward) -> None:
        """What a model says of rows of which no loss has had a label yet."""
        logits = None if event.gradients or event.batch is not None else event.logits
        if logits is None or logits.dim() != 2 or len(logits) < MIN_ROWS or self._in_vain >= KNOWN:
            return
        rows = rows_given(event)
        if rows is None or len(rows) != len(logits) or len(rows) > MOST_ROWS - len(self._said):
            return
        said = zip(exact(rows), logits.detach().argmax(1).tolist(), strict=True)
        new = {row: label for row, label in said if row not in self._labels and self._said.get(row) != label}
        self._said |= new
        self._in_vain = 0 if new else self._in_vain + 1

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.batch is not None or event.inside_step or not event.at.sampled:
            return
        forwards = [f for f in event.forwards if f.gradients and f.logits is not None and f.logits.dim() == 2]
        said = None if len(forwards) != 1 else forwards[0].logits
        if said is None or len(said) < MIN_ROWS or said.is_leaf:
            return
        rows = self._trained.at_hand.get(self.monitor.number_of(forwards[0].model), [])
        rows = rows if len(rows) == len(said) <= MOST_ROWS else []
        targets = event.losses[0].target if len(event.losses) == 1 and rows else None
        whole = targets is not None and targets.dim() == 1 and not targets.is_floating_point()
        labels = targets.tolist() if targets is not None and whole and len(targets) <= len(rows) else []
        if len(rows) == len(labels) <= MOST_ROWS - len(self._labels):
            self._labels |= dict(zip(rows, labels, strict=True))
        masks = {name: each for name, each in self._rows.held_out() if _is_mask(each, len(said))}
        if masks:
            hook = self.monitor.guarded(self, self._looking(masks, rows, labels, event.where))
            said.register_hook(hook)  # type: ignore[no-untyped-call]

    def _looking(
        self, masks: dict[str, torch.Tensor], rows: list[int], labels: list[int], where: str | None
    ) -> Callable[[torch.Tensor], None]:
        """Told of the gradient of what was said of all rows: the rows in the loss are those that have one."""

        def look(gradient: torch.Tensor) -> None:
            in_loss = (gradient.detach() != 0).any(1).cpu()
            places = in_loss.nonzero().flatten().tolist()
            known = dict(zip(places, labels, strict=True)) if rows and len(places) == len(labels) else {}
            for name, mask in masks.items():
                own = mask.cpu() & in_loss
                both, held_out = int(own.sum()), int(mask.sum())
                if not held_out or both < MIN_SHARE * held_out or both >= len(places):
                    self.tell(HeldOutRows(where=where))
                    continue
                self._updates[name] = self._updates.get(name, 0) + 1
                if self._updates[name] == MIN_UPDATES:
                    pseudo = self._are_said(
                        {rows[each]: known[each] for each in own.nonzero().flatten().tolist() if known}
                    )
                    self._tell_of(name, both, held_out, len(places), where, pseudo=pseudo)

        return look

    def _are_said(self, labels: Mapping[int, int]) -> bool:
        """Whether the labels of rows are what a model said of them before they were trained on."""
        return bool(labels) and all(self._said.get(row) == label for row, label in labels.items())

    def on_scored(self, fact: ScoredCall) -> None:
        of, number = fact.forward.batch, self.monitor.number_of(fact.forward.model)
        if fact.by_row or number in self._named or not self._named.takes(number) or number not in self._trained.of:
            return
        if of is None or of.of.trains:
            named = self._named[number] = _Named(self.monitor.locator.where())
            for name, value in self._rows.held_out():
                if (size := _chosen_by(value)) is not None:
                    named.places[name] = size
                elif rows := _first_rows(value):
                    named.rows[name] = rows

    def on_evaluation(self, fact: Evaluation) -> None:
        named = self._named.pop(fact.model, None)
        trained = self._trained.of.get(fact.model, set())
        alike = fact.model in self._trained.alike or fact.sampled > 1
        if named is None or alike or fact.first.gradients or len(fact.rows) < MIN_ROWS:
            return
        name = named.name_of(fact.rows)
        if name is None:
            return
        both = len(fact.rows & trained)
        # A line may have been asked about the training rows as well: those of this name must be among them.
        own = named.rows.get(name, fact.rows)
        of_name = len(trained.intersection(own)) >= MIN_SHARE * len(own)
        if of_name and MIN_SHARE * len(fact.rows) <= both < len(trained):
            labels = {row: self._labels[row] for row in fact.rows & trained & self._labels.keys()}
            self._tell_of(name, both, len(fact.rows), len(trained), named.where, pseudo=self._are_said(labels))
        else:
            self.tell(HeldOutRows())

    def _tell_of(self, name: str, both: int, rows: int, trained: int, where: str | None, *, pseudo: bool) -> None:
        self.tell(HeldOutRows(name=name, both=both, rows=rows, trained=trained, pseudo=pseudo, where=where))


def _is_mask(value: Any, rows: int) -> bool:
    return torch.is_tensor(value) and value.dtype is torch.bool and value.shape == (rows,)


def _chosen_by(value: Any) -> int | None:
    """How many rows a mask or the numbers of rows choose; None where a value is neither."""
    if torch.is_tensor(value) and value.dim() == 1 and value.dtype is torch.bool:
        return int(value.sum())
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    whole = kind == "i" or (torch.is_tensor(value) and value.dtype is torch.int64)
    return len(value) if whole and value.ndim == 1 else None


def _first_rows(value: Any) -> list[int]:
    """The identities of the first rows that a tensor or a list holds; none where that is something else."""
    if type(value) in (list, tuple):
        given = [each[0] if type(each) in (list, tuple) and each else each for each in value[:MOST]]
        known = bool(given) and all(
            torch.is_tensor(each) and each.dim() and each.shape == given[0].shape for each in given
        )
        value = torch.stack(given) if known else None
    known = torch.is_tensor(value) and value.dim() > 1 and not value.is_meta and is_dense(value)
    return exact(value[:MOST]) if known else []
