from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.inputs.observations.given_batches import BatchTrained, RowsTrained

MIN_ALIKE = 5
"""Batches whose rows must all be the same. By reasoning: with labels that differ, even one is hardly an accident."""

MIN_BATCHES = 5
"""Batches in a row that the loader gave, while the model was given the same rows. By reasoning: rows may repeat, but
whole batches do not."""


class Constant(Check):
    """All training rows are the same, although their labels differ.

    ## Why is this a bug?
    Nothing tells the rows apart, so the model can only learn how often each label occurs. The usual cases: numbers
    between 0 and 1 that are cast to integers, which makes all of them 0; an array that is created and never filled; an
    index that does not advance.

    ## What to do
    Print dataset[0] and dataset[1] as the model receives them. Cast to float before you divide, and don't cast back to
    integers.

    ## When it is right
    A batch of one row, rows without labels, and rows that all have the same label are not reported. Neither are rows
    that do not come from a DataLoader. A throughput benchmark on made-up rows is the one program that does this on
    purpose.

    ## References
    - https://discuss.pytorch.org/t/67853
    """

    explains = ("rows::repeated-or-skipped", "weights::units-alike", "gradients::cut-off")

    def judge(self, fact: RowsTrained) -> Verdict:
        if fact.largest is None or fact.alike != MIN_ALIKE:
            return HELD
        low, high = fact.largest.min().item(), fact.largest.max().item()
        return Found(
            expected="rows that differ, like their labels",
            observed=f"all rows of {MIN_ALIKE} batches of shape {tuple(fact.largest.shape)} are the same, "
            + (f"with {low:.6g} everywhere" if low == high else f"with values from {low:.6g} to {high:.6g}"),
        )


class StaleBatch(Check):
    """The model gets the same batch again and again, although the DataLoader yields different ones.

    ## Why is this a bug?
    The loop assigns the loader's batches to one name and feeds the model from another, which still holds an earlier
    batch. The model learns that batch by heart: the loss falls as it should, to nearly 0.

    ## What to do
    Feed the model the variable that the loop assigns.

    ## When it is right
    One batch that is trained on without a loader, to see whether the model can learn it, is not reported. Neither are
    fixed inputs (collocation points, noise that an image is made from) if the targets are the loader's, or if the batch
    has another backward pass, which the loader's rows go through.
    """

    explains = ("rows::repeated-or-skipped",)

    def judge(self, fact: BatchTrained) -> Verdict:
        if fact.drawn < MIN_BATCHES:
            return HELD
        return Found(
            expected="a new batch for the model each time",
            observed=f"the DataLoader yielded {fact.drawn} different batches, but the model got the same one each time",
            update=fact.at.updates_made,
        )
