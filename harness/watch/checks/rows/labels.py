from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch

from harness.torch_objects import is_dense
from harness.watch.check import HELD, Check, Found, NothingToJudge, Verdict
from harness.watch.events import BackwardBegins, Batch, End
from harness.watch.facts.datasets import plain
from harness.watch.facts.loaders import LossOfTwoLoaders
from harness.watch.facts.texts import LatestEncoded, TextLabels
from harness.watch.run.batches import LABELS, labels_of, tensors_in
from harness.watch.run.rows import exact, largest, numbers
from harness.watch.run.slices import FRAMES, MIN_ROWS, RowsByHand

MAX_NOISY_LABELS = 0.25
"""Largest share of rows with another label than their text's that may be noise or pseudo-labels which somebody put
there. Shuffled labels of two classes are wrong for half of the rows, or a little less. Half or double of it changes
verdicts (scripts/records/margins.json)."""

MIN_LOSSES = 3
"""Losses in a row whose two sides must be of different rows: by reasoning, two orders may agree in one small batch."""

COMPARED_BATCHES = 16
"""Batches whose labels are compared with those of their samples, and of a pass those that are compared with the texts.
By reasoning, what is enough to see a collate function at work."""

ENOUGH_ROWS = 24
"""Rows whose text is known that must have been seen."""

MOST_HASHED = 200_000
"""Rows of a tensor among which those of a batch are looked for. By reasoning, what is worth its time."""


class LabelsOfOtherRows(Check):
    """Rows are paired with the labels of other rows.

    ## Why is this a bug?
    The model is taught noise. With two classes about half of the labels are correct by chance, so the loss still falls
    a little, to that of guessing: it looks as if the task were hard.

    ## What to do
    Check the code that pairs texts with labels: only one of them may be shuffled, an index may be off by one, or the
    collate function may change the order.

    ## When it is right
    Labels that are renamed (0 for 1 and 1 for 0) are not reported, nor is noise in some of the labels, as with
    pseudo-labels. Rows are recognised by their tokens: rows that no tokenizer of transformers made, or that come in
    prefetched batches without a known text, are not looked at. Of a loop that indexes tensors, rows that are picked are
    where their labels are a slice.

    ## References
    - https://github.com/huggingface/datasets/issues/3190
    """

    needs = "labels that the dataset gives with its rows"

    def begin(self) -> None:
        self._texts, self._encoded = self.fact(TextLabels), self.fact(LatestEncoded)
        self._compared = 0
        """Batches that were compared with their samples."""
        self._by_workers = False
        self._seen: WeakKeyDictionary[Any, Counter[tuple[int, int]]] = WeakKeyDictionary()
        """Loader to how often a text of one label came with another."""
        self._slices = self.fact(RowsByHand)
        self._places: tuple[ref[torch.Tensor], dict[int, int]] | None = None
        """Tensor that batches are rows of, and where each row lies."""
        self._in_a_row = 0
        """Losses, one after the other, of which more than MAX_NOISY_LABELS of the rows have another label."""

    def on_batch(self, event: Batch) -> None:
        self._by_workers |= event.of.loader.num_workers > 0
        if self._compared < COMPARED_BATCHES and event.samples is not None:
            self._compare_with_samples(event)
        if event.of.number == 1 and event.of.batches <= COMPARED_BATCHES:
            self._compare_with_texts(event)

    def on_end(self, event: End) -> None:
        if self._by_workers:
            self.says(self.judge_workers())

    def _compare_with_samples(self, event: Batch) -> None:
        labels, (pairs, content) = labels_of(event.data), self._rows(event)
        if pairs is None or content is None or labels is None or not len(content) == len(labels) == len(pairs):
            return
        self._compared += 1
        known = dict(pairs)
        # Rows that cannot be told apart say nothing.
        wrong = [
            i for i, row in enumerate(content) if len(known) == len(pairs) and row in known and known[row] != labels[i]
        ]
        same = Counter(known.values()) == Counter(labels)
        swapped = len(wrong) if same else 0
        self.says(self.judge(len(content), swapped), event.where, event.at.update)

    def _rows(self, event: Batch) -> tuple[list[tuple[bytes, int]] | None, list[bytes] | None]:
        """Content and label of each sample, and the content of each row of the batch."""
        pairs, content = _pairs(event.samples), _content(event.data)
        encoded = self._encoded.taken()
        if pairs is not None or content is None or [numbers(ids) for _, ids in encoded] != content:
            return pairs, content
        texts = [frozenset(given) for given, _ in encoded]  # the collate function tokenizes them, in this order
        return _labelled_texts(event.samples, texts), [_key_of_texts(each) for each in texts]

    def _compare_with_texts(self, event: Batch) -> None:
        labels = labels_of(event.data)
        rows = None if labels is None else _tokens(event.data)
        if labels is None or rows is None or len(labels) != len(rows):
            return
        counts = self._seen.setdefault(event.of.loader, Counter())
        truth = self._texts.by_tokens()
        counts.update((truth[row], label) for row, label in zip(rows, labels, strict=True) if row in truth)
        total = counts.total()
        if total < ENOUGH_ROWS:
            return
        commonest: dict[int, int] = {}
        for (true, _), times in counts.items():
            commonest[true] = max(commonest.get(true, 0), times)
        wrong = total - sum(commonest.values())  # a mapping of one label to another is none
        self.says(self.judge_texts(total, wrong), event.where, event.at.update)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.batch is not None or event.inside_step or not event.at.sampled or len(event.losses) != 1:
            return
        (call,), forwards = event.losses, [each for each in event.forwards if each.gradients]
        labels, whole = self._slices.slice_of(call.target), call.target._base
        given = largest(forwards[0]) if len(forwards) == 1 else None
        if labels is None or whole is None or given is None or given.dim() < 2 or len(given) != labels.rows:
            return
        if labels.rows < MIN_ROWS or labels.rows == labels.of or self._slices.slice_of(given) is not None:
            return
        places = self._places_of(given, labels.of)
        if places is not None:
            own = whole.detach()[torch.tensor(places, device=whole.device)].reshape(call.target.shape)
            wrong = int((own != call.target.detach()).reshape(labels.rows, -1).any(1).sum())
            self._in_a_row = self._in_a_row + 1 if wrong > MAX_NOISY_LABELS * labels.rows else 0
            self.says(self.judge_slices(labels.rows, wrong, self._in_a_row), call.where, event.at.update)

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

    @staticmethod
    def judge(rows: int, swapped: int) -> Verdict:
        """Rows of a batch, and those with another one's label, where it has its samples' labels in another order."""
        if not swapped:
            return HELD
        return Found(
            expected="the label that the dataset returns for each row",
            observed=f"{swapped} of {rows} rows of a batch have the label of another row",
            hint="Check the collate function: it must put ids and labels in the same order.",
        )

    @staticmethod
    def judge_texts(rows: int, wrong: int) -> Verdict:
        """Rows of a loader so far, and those with another label than most with their text's label have."""
        if wrong <= MAX_NOISY_LABELS * rows:
            return HELD
        return Found(
            expected="the label that the dataset has for each text",
            observed=f"{wrong} of {rows} rows have the label of another row",
        )

    @staticmethod
    def judge_slices(rows: int, wrong: int, in_a_row: int) -> Verdict:
        """Rows that were picked from a tensor, and those with another label than the one in their place; and so many
        losses in a row of which many have."""
        if in_a_row < MIN_LOSSES:
            return HELD
        return Found(
            expected="labels taken by the same indices as the rows",
            observed=f"{wrong} of {rows} rows have a different label: the rows are picked by an index, but "
            "their labels are a slice",
            hint="Index inputs and labels by the same permutation.",
        )

    @staticmethod
    def judge_workers() -> Verdict:
        """Batches that workers made, so that their samples were not seen."""
        return NothingToJudge("samples are made in workers")


def _tokens(data: Any) -> list[tuple[int, ...]] | None:
    """The tokens of each row of a batch, without its padding."""
    named = dict(tensors_in(data))
    ids = next((value for name, value in named.items() if name.endswith("input_ids")), None)
    mask = next((value for name, value in named.items() if name.endswith("attention_mask")), None)
    if ids is None or mask is None or mask.shape != ids.shape:
        return None
    return [tuple(row[kept].tolist()) for row, kept in zip(ids, mask.bool(), strict=True)]


def _content(data: Any) -> list[bytes] | None:
    """The rows of a batch, as :func:`_pairs` names those of the samples."""
    if isinstance(data, Mapping):
        ids: Any = data.get("input_ids")
    else:
        ids = data[0] if isinstance(data, (list, tuple)) and torch.is_tensor(data[0]) else None
    if not is_dense(ids) or ids.dim() < 2:
        return None
    return [numbers(row) for row in ids]


def _pairs(samples: Any) -> list[tuple[bytes, int]] | None:
    """Content and label of the rows that the dataset gave."""
    found = []
    for sample in samples if isinstance(samples, (list, tuple)) else ():
        if isinstance(sample, Mapping):
            ids = sample.get("input_ids", None)
            label = next((sample[name] for name in LABELS if name in sample), None)
        elif isinstance(sample, (list, tuple)) and len(sample) >= 2:
            ids, label = sample[0], sample[-1]
        else:
            return None
        label = plain(label)
        if not (isinstance(ids, list) or hasattr(ids, "tolist")) or not isinstance(label, int):
            return None
        try:
            found.append((numbers(ids), int(label)))
        except ValueError:
            return None
    return found or None


def _key_of_texts(texts: frozenset[str]) -> bytes:
    return repr(sorted(texts)).encode()


def _labelled_texts(samples: Any, texts: list[frozenset[str]]) -> list[tuple[bytes, int]] | None:
    """Pairs as :func:`_pairs` makes them, of samples whose texts the collate function tokenizes."""
    found = []
    for sample in samples if isinstance(samples, (list, tuple)) else ():
        if isinstance(sample, Mapping):
            values, label = list(sample.values()), next((sample[name] for name in LABELS if name in sample), None)
        elif isinstance(sample, (list, tuple)) and sample:
            values, label = list(sample), sample[-1]
        else:
            return None
        own = {value for value in values if isinstance(value, str)}
        content = next((_key_of_texts(each) for each in texts if each and each <= own), None)
        if content is None or not isinstance(plain(label), int):
            return None
        found.append((content, int(plain(label))))
    return found or None


class LoadersApart(Check):
    """Inputs and targets come from two DataLoaders that shuffle independently.

    ## Why is this a bug?
    Two loaders that a loop goes through side by side draw two permutations. Every input is paired with the target of
    another row, so there is nothing to learn but what targets are like on average. Generators with the same seed do not
    help: `zip` asks the first loader once more than the others, whose sampler then draws once more, and from the second
    epoch on the orders diverge.

    ## What to do
    Put inputs and targets into one dataset, torch.utils.data.TensorDataset(inputs, targets) or StackDataset, and use
    one loader.

    ## When it is right
    When rows need not belong together: two domains, or two sets of different sizes. A loss is reported only if its
    targets are a batch of one loader and its predictions are for a batch of another loader with the same number of
    rows.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.StackDataset
    """

    new_since = "0.3.0"

    def judge(self, fact: LossOfTwoLoaders) -> Verdict:
        if fact.apart != MIN_LOSSES:
            return HELD
        return Found(
            expected="inputs and targets of the same rows",
            observed=f"the model gets rows {fact.inputs}, but the loss gets targets of rows {fact.targets}",
        )
