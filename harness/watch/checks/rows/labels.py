from __future__ import annotations

from harness.watch.check import HELD, Check, Found, NothingToJudge, Verdict
from harness.watch.checks.rows.observations.labels_of_rows import (
    CollatedByWorkers,
    LabelsBesideSamples,
    LabelsBesideTexts,
)
from harness.watch.checks.rows.observations.rows_of_slices import LabelsSliced
from harness.watch.facts.loaders import LossOfTwoLoaders

MAX_NOISY_LABELS = 0.25
"""Largest share of rows with another label than their text's that may be noise or pseudo-labels which somebody put
there. Shuffled labels of two classes are wrong for half of the rows, or a little less. Half or double of it changes
verdicts (scripts/records/margins.json)."""

MIN_LOSSES = 3
"""Losses in a row whose two sides must be of different rows: by reasoning, two orders may agree in one small batch."""


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

    def judge(self, fact: LabelsBesideSamples) -> Verdict:
        if not fact.swapped:
            return HELD
        return Found(
            expected="the label that the dataset returns for each row",
            observed=f"{fact.swapped} of {fact.rows} rows of a batch have the label of another row",
            hint="Check the collate function: it must put ids and labels in the same order.",
        )

    def judge_texts(self, fact: LabelsBesideTexts) -> Verdict:
        if fact.wrong <= MAX_NOISY_LABELS * fact.rows:
            return HELD
        return Found(
            expected="the label that the dataset has for each text",
            observed=f"{fact.wrong} of {fact.rows} rows have the label of another row",
        )

    def judge_slices(self, fact: LabelsSliced) -> Verdict:
        if fact.in_a_row < MIN_LOSSES:
            return HELD
        return Found(
            expected="labels taken by the same indices as the rows",
            observed=f"{fact.wrong} of {fact.rows} rows have a different label: the rows are picked by an index, but "
            "their labels are a slice",
            hint="Index inputs and labels by the same permutation.",
        )

    def judge_workers(self, fact: CollatedByWorkers) -> Verdict:
        return NothingToJudge("samples are made in workers")


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
