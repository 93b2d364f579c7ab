"""The labels and scores of rows."""

from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.inputs.observations.classes import (
    ClassesDifferentiated,
    LabelsOverTraining,
    OneOutput,
    OneOutputScored,
    PreferencesGiven,
)

MIN_ROWS = 32
"""Labels that are looked at before something is said of all of them."""

REGRESSION_THRESHOLD = 0.5
"""Output from which on a regression to 0 and 1 says 1."""

MIN_PREFERENCES = 16
"""Rows with two scores that differ. By reasoning: of fewer, the greater part says little."""


class OneClass(Check):
    """All training rows have the same label.

    ## Why is this a bug?
    A single class for all rows teaches a constant: the loss falls to 0, and the model gives the same answer for every
    row. The usual reasons are a wrong column, an index that does not advance, or data that are sorted by class and then
    cut.

    ## What to do
    Check which column becomes the labels, and whether the rows are sorted by class.

    ## When it is right
    Rows without a label (-100) and labels that the script makes for a contrastive loss are not reported.
    """

    explains = ("loss::not-finite", "loss::constant", "gradients::cut-off")

    def judge(self, fact: LabelsOverTraining) -> Verdict:
        if fact.rows < MIN_ROWS or len(fact.classes) != 1:
            return HELD
        (label,) = fact.classes
        return Found(
            expected="training rows of more than one class",
            observed=f"all {fact.rows} rows that were trained on have the label {label}",
            update=1,
        )


class RowsIgnored(Check):
    """`ignore_index` leaves all rows of one class out of the loss.

    ## Why is this a bug?
    `ignore_index` names a label whose rows do not count. The index of a padding token, usually 0, is also that of the
    first class if each row has one label: the model is never taught that class, and the mean is over the others.

    ## What to do
    Remove ignore_index if each row has one label. Ignore this if the class stands for rows without a label.

    ## When it is right
    Ignore the warning if the class means "unknown" or "void". Labels of tokens and of pixels, one of which is usually
    ignored, are not reported, nor is a label that is not a class, such as -100.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    severity = "warning"
    explains = ("loss::not-finite", "loss::constant", "gradients::cut-off")

    def judge(self, fact: ClassesDifferentiated) -> Verdict:
        ignored = fact.ignored
        if not fact.left_out or not 0 <= ignored < fact.classes:
            return HELD
        return Found(
            expected="every class in the loss",
            observed=f"ignore_index={ignored} leaves out the rows of class {ignored}: {fact.left_out} of {fact.rows}",
        )


class ClassesAsNumbers(Check):
    """The model has one output for two classes, so it fits them as numbers or always predicts the first class.

    ## Why is this a bug?
    `num_labels=1` turns the task into a regression to whole numbers. The output is not a logit, and `argmax` over one
    output is 0 whatever the model has learned, so every row is assigned to the first class.

    ## What to do
    Give the model one output per class (`num_labels=2`), or make predictions with a threshold.

    ## When it is right
    Floating point targets of a regression are not reported, nor is a regression to 0 and 1 whose predictions are made
    with a threshold.

    ## References
    - https://github.com/huggingface/transformers/issues/45611
    """

    explains = ("loss::not-finite", "loss::constant", "gradients::cut-off")

    def judge(self, fact: OneOutput) -> Verdict:
        if fact.trained < MIN_ROWS or fact.targets != {0.0, 1.0}:
            return HELD
        return self._not_classes("num_labels=1 makes this a regression, but all targets are 0 or 1")

    def judge_metric(self, fact: OneOutputScored) -> Verdict:
        """The likeliest of one output is always the first."""
        if fact.largest < REGRESSION_THRESHOLD or fact.predictions != {0.0} or fact.references != {0.0, 1.0}:
            return HELD
        return self._not_classes("num_labels=1 gives one output, so its argmax is 0 for every row")

    def _not_classes(self, observed: str) -> Found:
        return Found(expected="one output per class", observed=observed)


class PreferenceSwapped(Check):
    """In most rows of a preference dataset, the rejected answer has a higher score than the chosen one.

    ## Why is this a bug?
    DPO and reward models learn to prefer what is called chosen. If the two were unpacked in the wrong order, or sorted
    in the other direction, the loss falls as it should, and the model learns to give the worse answer.

    ## What to do
    Swap the two columns, or sort the answers by score in descending order before you take the first as `chosen`.

    ## When it is right
    Scores for which lower is better (a loss, a distance, a rank). Rows cannot be judged without numeric columns whose
    names differ only in `chosen` and `rejected` (`score_chosen`, `score_rejected`), nor where the dataset is of a class
    of your own: reading it would call your code.

    ## References
    - https://huggingface.co/docs/trl/dataset_formats
    """

    severity = "warning"
    new_since = "0.2.0"

    def judge(self, fact: PreferencesGiven) -> Verdict:
        if fact.rows < MIN_PREFERENCES:
            return NOTHING_TO_JUDGE
        if 2 * fact.lower <= fact.rows:
            return HELD
        return Found(
            expected=f"{fact.chosen} above {fact.rejected}",
            observed=f"{fact.chosen} is below {fact.rejected} in {fact.lower} of {fact.rows} rows",
        )
