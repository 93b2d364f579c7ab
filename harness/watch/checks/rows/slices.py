from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.torch_objects import is_dense
from harness.watch.bounded import MOST, FirstByKey
from harness.watch.check import HELD, Check, Found, NothingToJudge, Verdict
from harness.watch.events import BackwardBegins, End, Forward
from harness.watch.run.evaluations import Evaluation, ScoredCall
from harness.watch.run.rows import KNOWN, MOST_ROWS, TrainedRows, exact, rows_given
from harness.watch.run.slices import MIN_ROWS, RowsByHand

MIN_EPOCHS = 3
"""Times that the first row was trained on. Half or double of it changes verdicts (scripts/records/margins.json)."""

MIN_UPDATES = 3
"""Updates in which rows that are held out had a gradient."""

MIN_SHARE = 0.5
"""Smallest share of the rows that are held out that must have been trained on. Copies of a few rows are in many
datasets. Half or double of it changes verdicts (scripts/records/margins.json)."""

MIN_LEFT = 0.02
"""Smallest share of the rows that is worth a word."""


class TailNeverSeen(Check):
    """The last training rows are never in a batch.

    ## Why is this a bug?
    `for i in range(len(x) // batch)` leaves out the remainder of the division. With another order in each epoch, other
    rows are left out each time; without one, it is always the same rows and, if they are sorted, all rows of a class.

    ## What to do
    Loop to the end, `for i in range(0, len(x), batch)`, or draw a new order before each epoch.

    ## When it is right
    Rows that are shuffled before each epoch, and last rows that are evaluated, are not reported. Neither is a remainder
    of less than 2% of all rows, or the end of a text that a language model is trained on.
    """

    new_since = "0.3.0"
    severity = "warning"

    needs = "batches that are slices of one tensor"

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
            self.says(self.judge(rows, left, seen.epochs, seen.longest), seen.where)

    @staticmethod
    def judge(rows: int, left: int, epochs: int, longest: int) -> Verdict:
        """Rows of a tensor of which slices were trained on, so many times from its first row on, the largest of so many
        rows; and those at its end that never were, where all before them were, and that were not held out."""
        if not MIN_LEFT * rows <= left < longest:
            return HELD
        return Found(
            expected="each row in some batch",
            observed=f"the last {left} of {rows} rows were never trained on in {epochs} epochs, which "
            f"all have the same batches, of {longest} rows each",
        )


@dataclass(eq=False)
class _Visited:
    """Rows of one tensor that a model was trained on."""

    rows: torch.Tensor
    """A mask."""
    where: str | None
    epochs: int = 0
    longest: int = 0
    """Rows of the largest batch."""


class TestRowsInLoss(Check):
    """Held-out rows are in the loss, so the model is trained on rows that it is evaluated on.

    ## Why is this a bug?
    A fold that is left out of the wrong list, or a mask of a graph's nodes that includes the test nodes, teaches the
    model the labels that it is asked for later. The score says how well it remembers them.

    ## What to do
    Compute the loss over the training rows alone; make a separate list of rows for each split, and check that they
    don't overlap.

    ## When it is right
    Training rows that are scored along with others are not reported: the check looks only at rows that the script calls
    test, validation or held out, and only if they are not all that the model is trained on. Rows are recognised by
    their content, and not looked at if one of them comes twice in a batch. Pseudo-labels are not reported either: the
    labels of those rows in the loss are what a model predicted before. A model that is retrained on all rows, after
    its settings were chosen, has nothing left to be evaluated on.
    """

    new_since = "0.3.0"
    __test__ = False  # it is no class of pytest's

    needs = "rows without a DataLoader that the script calls test, validation or held out"

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
        predicted = zip(exact(rows), logits.detach().argmax(1).tolist(), strict=True)
        new = {row: label for row, label in predicted if row not in self._labels and self._said.get(row) != label}
        self._said |= new
        self._in_vain = 0 if new else self._in_vain + 1

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.batch is not None or event.inside_step or not event.at.sampled:
            return
        forwards = [f for f in event.forwards if f.gradients and f.logits is not None and f.logits.dim() == 2]
        logits = None if len(forwards) != 1 else forwards[0].logits
        if logits is None or len(logits) < MIN_ROWS or logits.is_leaf:
            return
        rows = self._trained.at_hand.get(self.monitor.number_of(forwards[0].model), [])
        rows = rows if len(rows) == len(logits) <= MOST_ROWS else []
        targets = event.losses[0].target if len(event.losses) == 1 and rows else None
        whole = targets is not None and targets.dim() == 1 and not targets.is_floating_point()
        labels = targets.tolist() if targets is not None and whole and len(targets) <= len(rows) else []
        if len(rows) == len(labels) <= MOST_ROWS - len(self._labels):
            self._labels |= dict(zip(rows, labels, strict=True))
        masks = {name: each for name, each in self._rows.held_out() if _is_mask(each, len(logits))}
        if masks:
            hook = self.monitor.guarded(self, self._looking(masks, rows, labels, event.where))
            logits.register_hook(hook)  # type: ignore[no-untyped-call]

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
                    self.says(HELD, where)
                    continue
                self._updates[name] = self._updates.get(name, 0) + 1
                if self._updates[name] == MIN_UPDATES:
                    pseudo = self._are_said(
                        {rows[each]: known[each] for each in own.nonzero().flatten().tolist() if known}
                    )
                    self.says(self.judge(name, held_out, both, len(places), pseudo=pseudo), where, self.monitor.update)

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
            verdict = self.judge(name, len(fact.rows), both, len(trained), pseudo=self._are_said(labels))
            self.says(verdict, named.where, fact.at.update)
        else:
            self.says(HELD)

    @staticmethod
    def judge(name: str, rows: int, both: int, trained: int, *, pseudo: bool = False) -> Verdict:
        """Of the rows that the script calls by a name, those among all that were in the loss; and whether their labels
        there are what a model said of them before, as ``pseudo``-labels are."""
        if not both:
            return HELD
        if pseudo:
            return NothingToJudge(
                "the labels of the held-out rows in the loss are a model's predictions, not their own"
            )
        return Found(
            expected=f"a loss without the rows of {name}",
            observed=f"{both} of the {rows} rows of {name} are among the {trained} rows in the "
            "loss: the model was trained on test rows",
        )


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
