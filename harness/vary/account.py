"""The account of one start, beside its journal: what the script reported, and which DataLoaders it evaluated with."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import IterableDataset

from harness.digests import digest
from harness.torch_objects import held_by, unchanged_random_state
from harness.vary.change import Change, Loaders, label_of
from harness.watch.bounded import First
from harness.watch.bus import OutcomeListener
from harness.watch.events import Batch, Forward, LoaderMade, Reported, Seeded, Step, StepBegins, TrainerMade
from harness.watch.facts.datasets import length
from harness.watch.facts.reported_numbers import kind_of, numbers_in
from harness.watch.monitor import Monitor
from harness.watch.run.batches import labels_of, tensors_in

FILE = "account.json"

MOST_REPORTED = 20_000
"""Numbers that are kept of what a script reports."""

ASKED_AGAIN = ("evaluated twice", "evaluation batches", "evaluation order")
"""Changes with which calls of an evaluation are made twice, to see whether the model says the same."""

NO_RESULT = re.compile(r"\b(lr|learning.rate|time|sec(ond)?s?|eta|elapsed|per.second|memory)\b")
"""Names of numbers that say how the run goes, and not what it comes to."""


@dataclass(frozen=True)
class ReportedNumber:
    """A number that the script reported."""

    name: str
    value: float
    half: float
    """Half of a unit in its last digit."""
    percent: bool
    where: str | None
    at: int
    """Updates made before it."""

    @property
    def kind(self) -> str | None:
        return kind_of(self.name)


@dataclass(frozen=True)
class LoaderUsed:
    """A DataLoader that the script made, in their order, and what it did with its batches."""

    number: int
    where: str | None
    size: int | None
    """Rows of a batch; None where the script makes the batches itself."""
    ordered: bool
    """Whether the order of its rows is that of its dataset, or a shuffled one of torch's own."""
    batches: int
    """Batches of its longest pass."""
    rows: int
    """Rows of its dataset; 0 where it does not say."""
    trains: bool
    evaluates: bool
    """Whether a model was asked about its batches without gradients."""
    labels: tuple[int, ...] = ()
    """Number of evaluated rows of each class, the most frequent first; empty where that cannot be told."""
    exchangeable: bool = False
    """Whether its batches have labels that are known as such."""
    streams: bool = False
    """Whether its rows come from an IterableDataset, whose order is that of its workers."""
    shuffles: bool = False


@dataclass(frozen=True)
class Account:
    reported: tuple[ReportedNumber, ...] = ()
    loaders: tuple[LoaderUsed, ...] = ()
    seeded: tuple[str, ...] = ()
    """The libraries whose random numbers the script seeded itself."""
    carries: bool = False
    """Whether an evaluation hands on to a call what the one before gave: rows then have an order."""
    labels: int = 0
    """Labels that were exchanged with others of their batch."""
    exchanged: int = 0
    """Exchanged labels that changed."""
    asked_again: int = 0
    """Calls of an evaluation that were made a second time."""
    otherwise: int = 0
    """Repeated calls that gave different outputs, as other random numbers were drawn."""
    otherwise_at: str | None = None
    has_trainer: bool = False
    """Whether it made a Trainer of transformers."""
    fit: float | None = None
    """How well what models said fits the labels of the evaluated batches, in a number that is another where the labels
    are exchanged among rows that get other answers; None where the two cannot be held beside each other."""

    @classmethod
    def read(cls, folder: str) -> Account:
        found = json.loads(Path(folder, FILE).read_text(encoding="utf-8"))
        reported = tuple(ReportedNumber(**each) for each in found.pop("reported"))
        loaders = tuple(LoaderUsed(**{**each, "labels": tuple(each["labels"])}) for each in found.pop("loaders"))
        return cls(reported, loaders, tuple(found.pop("seeded")), **found)


@dataclass
class _Used:
    """What is known of a DataLoader so far."""

    where: str | None = None
    rows: int = 0
    passes: list[Any] = field(default_factory=list)
    evaluates: bool = False
    labels: Counter[int] = field(default_factory=Counter)
    counted: int = 0
    """The pass whose labels are counted: the first in which a model was evaluated."""
    exchangeable: bool = False
    streams: bool = False


class Accountant(OutcomeListener):
    """Keeps the account, and makes what a change has made at the calls of a model and at updates."""

    id = "vary::account"

    def __init__(self, monitor: Monitor, loaders: Loaders, change: Change) -> None:
        self.monitor, self._loaders, self._change = monitor, loaders, change
        self._reported = First[ReportedNumber](MOST_REPORTED)
        self._used: dict[int, _Used] = {}
        self._seeded: dict[str, None] = {}
        self._gave: set[int] = set()
        """Where in memory what the latest evaluated call gave is."""
        self._carries = False
        self._again = self._otherwise = 0
        self._otherwise_at: str | None = None
        self._rates: list[Any] = []
        self._fit: float | None = None
        self._has_trainer = False

    def account(self) -> Account:
        used = tuple(self._of(number, used) for number, used in sorted(self._used.items()))
        return Account(
            reported=tuple(self._reported),
            loaders=used,
            seeded=tuple(self._seeded),
            carries=self._carries,
            labels=self._loaders.labels,
            exchanged=self._loaders.exchanged,
            asked_again=self._again,
            otherwise=self._otherwise,
            otherwise_at=self._otherwise_at,
            has_trainer=self._has_trainer,
            fit=self._fit,
        )

    def write(self, folder: str) -> None:
        Path(folder, FILE).write_text(json.dumps(asdict(self.account())), encoding="utf-8")

    def _of(self, number: int, used: _Used) -> LoaderUsed:
        made = self._loaders.made[number]
        batches = max((each.planned or each.batches for each in used.passes), default=0)
        trains = any(each.trains for each in used.passes)
        classes = tuple(count for _, count in used.labels.most_common())
        how = (made.size, made.ordered, batches, used.rows, trains, used.evaluates, classes)
        return LoaderUsed(number, used.where, *how, used.exchangeable, used.streams, made.shuffles)

    # What is used

    def _use(self, loader: Any) -> _Used | None:
        number = self._loaders.number(loader)
        return None if number is None else self._used.setdefault(number, _Used())

    def on_loader_made(self, event: LoaderMade) -> None:
        if (used := self._use(event.loader)) is not None:
            used.where = used.where or event.where
            dataset = getattr(event.loader, "dataset", None)
            used.rows = length(dataset) or 0
            used.streams = isinstance(dataset, IterableDataset)

    def on_batch(self, event: Batch) -> None:
        if (used := self._use(event.of.loader)) is not None and (not used.passes or used.passes[-1] is not event.of):
            used.passes.append(event.of)

    def on_seeded(self, event: Seeded) -> None:
        if event.where is not None:
            self._seeded[event.library] = None

    def on_trainer_made(self, event: TrainerMade) -> None:
        self._has_trainer = True

    def on_reported(self, event: Reported) -> None:
        for number in numbers_in(event.text):
            if kind_of(number.name) is not None and not NO_RESULT.search(number.name):
                at = event.at.updates_made
                self._reported.append(
                    ReportedNumber(number.name, number.value, number.half, number.percent, event.where, at)
                )

    # What is evaluated

    def on_forward(self, event: Forward) -> None:
        if event.gradients or (event.batch is not None and event.batch.of.trains):
            return
        given = {each.data_ptr() for _, each in tensors_in([event.args, dict(event.kwargs)])}
        self._carries = self._carries or not self._gave.isdisjoint(given - {0})
        self._gave = {each.data_ptr() for each in event.outputs} - {0}
        if event.batch is not None and (used := self._use(event.batch.of.loader)) is not None:
            self._count(used, event, event.batch)
        if self._change.kind in ASKED_AGAIN:
            self._ask_again(event)

    def _count(self, used: _Used, event: Forward, batch: Batch) -> None:
        used.evaluates = True
        used.counted = used.counted or batch.of.number
        if (found := label_of(batch.data)) is None:
            return
        used.exchangeable = True
        if batch.of.number == used.counted:
            used.labels.update(labels_of(batch.data) or ())
        if event.logits is not None and (fits := _fit(event.logits, found[1])) is not None:
            self._fit = (self._fit or 0.0) + fits

    def _ask_again(self, event: Forward) -> None:
        """Ask the model once more, and let go of what it says; random numbers go on as if it had not been."""
        copies = _copied(event.args), _copied(event.kwargs)
        if any(each is _NONE for each in copies) or event.unhooked:
            return
        autograd = torch.inference_mode() if torch.is_inference_mode_enabled() else torch.no_grad()
        try:
            with self.monitor.suspended, unchanged_random_state(), autograd:
                again = event.model(*copies[0], **copies[1])
        except Exception:  # noqa: BLE001 - a model that can be called once, as one that counts on what came before
            return
        self._again += 1
        before, after = ([digest(each) for _, each in tensors_in(each)] for each in (event.output, again))
        if before != after:
            self._otherwise += 1
            self._otherwise_at = self._otherwise_at or event.where

    # What is updated

    def on_step_begins(self, event: StepBegins) -> None:
        if self._change.kind == "rate 0" and held_by(event.optimizer):
            groups = event.optimizer.param_groups
            self._rates = [group.get("lr") for group in groups]
            for group in groups:
                if "lr" in group:
                    group["lr"] = torch.zeros_like(group["lr"]) if torch.is_tensor(group["lr"]) else 0.0

    def on_step(self, event: Step) -> None:
        rates, self._rates = self._rates, []
        for group, rate in zip(event.optimizer.param_groups, rates, strict=False):
            if rate is not None:
                group["lr"] = rate


def _fit(logits: torch.Tensor, labels: torch.Tensor) -> float | None:
    """Hits, or the sum of the products where there is one answer for a row."""
    labels = labels.to(logits.device)
    if logits.shape[:1] + logits.shape[2:] == labels.shape and logits.dim() > 1 and not labels.is_floating_point():
        return float((logits.argmax(1) == labels).sum())
    if logits.numel() == labels.numel():
        return float(logits.reshape(-1).double() @ labels.reshape(-1).double())
    return None


_NONE = object()


def _copied(value: Any) -> Any:
    """What a call is given, with copies of its tensors; _NONE where something in it may change as it is called."""
    if torch.is_tensor(value):
        return value.detach().clone()
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        found = [_copied(each) for each in value]
        return _NONE if any(each is _NONE for each in found) else type(value)(found)
    if type(value) is dict or type(value).__name__ == "mappingproxy":
        named = {key: _copied(each) for key, each in value.items()}
        return _NONE if any(each is _NONE for each in named.values()) else named
    return value if value is None or isinstance(value, (bool, int, float, str, torch.dtype, torch.device)) else _NONE
