from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from harness.watch.bounded import FirstByKey
from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.events import BackwardBegins, Batch, End, Forward, LossCall
from harness.watch.facts.loss_inputs import REGRESSIONS
from harness.watch.run.batches import tensors_in
from harness.watch.run.rows import exact

MIN_NOISED = 16
"""Rows that must have come again with other noise. By reasoning: what a script does to a batch, it does to all rows."""

MOST_NOISED = 4096
"""Rows whose first noise is remembered, of which enough come again in a shortened epoch."""


class TargetIsNoised(Check):
    """The target of the loss is the noised input itself, so the model only learns to copy it.

    ## Why is this a bug?
    A denoising or diffusion model is given a noised row, and is to predict the clean row or the noise. If the loss
    compares its output with the very tensor that it was given, the answer stands in the input: the loss falls fast, and
    nothing of the data is learned. It comes of a name that is used twice, `x = add_noise(x, t)`, or of noise that is
    added in place.

    ## What to do
    Keep the clean row under a name of its own, and compare with it, or with the noise.

    ## When it is right
    An autoencoder that is to reproduce its input, of rows as the dataset gives them, is not reported, with or without
    augmentation in the dataset. Ignore this warning if you augment whole batches at random, and the model is to
    reproduce the augmented rows.

    ## References
    - https://arxiv.org/abs/2006.11239 (the target is the noise)
    - https://github.com/irom-princeton/dppo/issues/14
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "loss of numbers, as many as the model is given"

    def begin(self) -> None:
        self._given = FirstByKey[int, int](MOST_NOISED)
        """By a row of the dataset, what the model was first given in its place."""
        self._again, self._noised = set[int](), set[int]()
        self._others = False
        """Whether there was a target in the shape of an input that was another."""
        self._where: str | None = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not event.at.sampled or event.batch is None:
            return
        for call in event.losses:
            inputs = list(_inputs(event.forwards, call))
            given = next((each for each in inputs if torch.equal(each, call.target)), None)
            rows = None if given is None else _rows(event.batch, given)
            self._others |= bool(inputs) and given is None
            if given is not None and rows is not None:
                self._where = self._where or call.where
                self._add(exact(rows), exact(given))

    def _add(self, rows: list[int], given: list[int]) -> None:
        for row, noised in zip(rows, given, strict=True):
            if row in self._given:
                self._again.add(row)
                if self._given[row] != noised:
                    self._noised.add(row)
            self._given.setdefault(row, noised)

    def on_end(self, event: End) -> None:
        if self._where is not None or self._others:
            self.says(self.judge(len(self._again), len(self._noised), self._others), self._where)

    @staticmethod
    def judge(again: int, noised: int, others: bool = False) -> Verdict:
        """Rows that came again as the target and the input at once, and those of them that the script had changed, each
        time otherwise; and whether there were ``others``, whose target was not the input."""
        if again < MIN_NOISED:
            return HELD if others and not again else NOTHING_TO_JUDGE
        if noised < again:
            return HELD
        return Found(
            expected="the clean row, or the noise, as the target",
            observed=f"the target is what the model was given, for each of {again} rows with other noise in each epoch",
        )


def _inputs(forwards: Sequence[Forward], call: LossCall) -> Iterator[torch.Tensor]:
    """What a model was given that has the shape of the target of a loss of numbers."""
    target = call.target
    if call.function in REGRESSIONS and target.dim() > 1 and target.is_floating_point():
        for forward in forwards if not target.requires_grad else ():
            for given in forward.tensors.values() if _is_said_by(call.input, forward) else ():
                if given.shape == target.shape and given.dtype == target.dtype:
                    yield given


def _rows(batch: Batch, given: torch.Tensor) -> torch.Tensor | None:
    """The numbers of the dataset that a batch has in the place of what the model was given."""
    found = (each for _, each in tensors_in(batch.data) if each.is_floating_point())
    return next((each for each in found if each.shape == given.shape), None)


def _is_said_by(given: torch.Tensor, forward: Forward) -> bool:
    """Whether a loss is given what this model said, and not what another made of that."""
    return forward.gradients and any(given is each or given.data_ptr() == each.data_ptr() for each in forward.outputs)
