from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from harness.watch.bounded import First, FirstByKey
from harness.watch.check import NOTHING_TO_JUDGE, Check, Found, Held, Verdict
from harness.watch.events import Batch, End, Forward, ScalerFitted
from harness.watch.facts.datasets import length
from harness.watch.run.batches import tensors_in
from harness.watch.run.passes import PassesOver
from harness.watch.run.rows import are_measured

MOST_SCALERS = 4
"""Scalers that are kept: one for the inputs and one for the targets, twice."""

ENOUGH_ROWS = 32
"""Rows, or steps of windows, of an evaluation that must all be among those that a scaler was fitted on."""

MOST_BY_HAND = 20_000
"""Rows that are remembered where no loader gives them."""

MOST_ROWS = 512
"""Rows of a loader that are kept, or steps of its windows."""


class ScaledWithEvaluationRows(Check):
    """The scaler was fitted on the rows of training and evaluation together.

    ## Why is this a bug?
    Mean and range of the rows to come are not known when a model is used. If the scaler has seen the evaluation, the
    inputs hold something of it: a series that grows is scaled so that its future fits in, and the score is better than
    on new data.

    ## What to do
    Split first, fit the scaler on the training rows, and use it for all: `scaler.fit(x_train)`, then
    `scaler.transform(x_test)`.

    ## When it is right
    Ignore this warning if all rows that will ever be asked about are there already. Only scalers of scikit-learn with
    two columns or more are seen, whose rows a model is given as they are, or as windows of them.

    ## References
    - https://scikit-learn.org/stable/common_pitfalls.html#data-leakage
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "evaluation of rows that a scaler of scikit-learn has scaled"

    def begin(self) -> None:
        self._fitted = First[ScalerFitted](MOST_SCALERS)
        self._rows = FirstByKey[int, First[bytes]]()
        """By a loader, the rows of its first batches, or the steps of its windows."""
        self._trained = set[bytes]()
        """Rows that a model was given without a loader, and with a gradient."""
        self._asked = FirstByKey[str | None, set[bytes]]()
        """Those that it was given without one, by the line."""

    def on_scaler_fitted(self, event: ScalerFitted) -> None:
        if event.rows.shape[1] > 1:
            self._fitted.append(event)

    def on_batch(self, event: Batch) -> None:
        key = id(event.of.loader)
        if not self._fitted or not self._rows.takes(key):
            return
        kept = self._rows.setdefault(key, First(MOST_ROWS))
        for row in () if kept.is_full else self._scaled(tensor for _, tensor in tensors_in(event.data)):
            kept.append(row)

    def on_forward(self, event: Forward) -> None:
        if self._fitted and event.batch is None and len(self._trained) < MOST_BY_HAND:
            kept = self._trained if event.gradients else self._asked.setdefault(event.where, set())
            if event.at.sampled if event.gradients else len(kept) < MOST_ROWS:  # what comes later waits for nobody
                kept.update(self._scaled(event.tensors.values())[: MOST_BY_HAND - len(kept)])

    def _scaled(self, tensors: Iterable[torch.Tensor]) -> list[bytes]:
        """The rows of the first tensor that may be what a scaler has made."""
        columns = {each.rows.shape[1] for each in self._fitted}
        for tensor in tensors:
            if tensor.is_floating_point() and tensor.dim() > 1 and tensor.shape[-1] in columns:
                rows = tensor.detach().reshape(-1, tensor.shape[-1])[:MOST_BY_HAND]
                return _digests(rows.cpu().float().numpy()) if are_measured(rows) else []
        return []

    def on_passes_over(self, fact: PassesOver) -> None:
        training = {id(each.first.loader): each for each in fact.training}
        others = {id(each.first.loader): each for each in fact.evaluating}
        for fitted in self._fitted if training else ():
            known = set(_digests(np.asarray(fitted.scaler.transform(fitted.rows))))
            trained = [each for key, each in training.items() if self._are_among(known, key)]
            for key, other in others.items():
                seen = self._rows.get(key, First())
                if key in training or not trained or len(seen) < ENOUGH_ROWS:
                    continue
                needed = (length(other.first.dataset) or 0) + max(length(each.first.dataset) or 0 for each in trained)
                with_it = self._are_among(known, key) and len(fitted.rows) >= needed
                self.says(self.judge(len(fitted.rows), needed, with_it=with_it), fitted.where)

    def on_end(self, event: End) -> None:
        apart = [rows for rows in self._asked.values() if len(rows) >= ENOUGH_ROWS and not rows & self._trained]
        for fitted in self._fitted if apart and 0 < len(self._trained) < MOST_BY_HAND else ():
            known = set(_digests(np.asarray(fitted.scaler.transform(fitted.rows))))
            for rows in apart if self._trained <= known else ():
                needed = len(self._trained) + len(rows)
                with_it = rows <= known and len(fitted.rows) >= needed
                self.says(self.judge(len(fitted.rows), needed, with_it=with_it), fitted.where)

    def _are_among(self, known: set[bytes], loader: int) -> bool:
        rows = self._rows.get(loader, First())
        return len(rows) > 0 and all(row in known for row in rows)

    @staticmethod
    def judge(rows: int, needed: int, *, with_it: bool) -> Verdict:
        """Rows that a scaler was fitted on, those that training and evaluation have together, and whether they are
        among them."""
        if not needed:
            return NOTHING_TO_JUDGE
        if not with_it:
            return Held(f"a scaler was fitted on {rows:,} rows; training and evaluation have {needed:,}")
        return Found(
            expected="a scaler that is fitted on the training rows",
            observed=f"it was fitted on {rows:,} rows, among which are those that are evaluated",
        )


def _digests(rows: Any) -> list[bytes]:
    """Each row as a model is given it, in single precision."""
    return [row.tobytes() for row in np.ascontiguousarray(rows, dtype=np.float32)]
