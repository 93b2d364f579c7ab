from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.rows.observations.evaluation_rows import (
    EvaluationLeft,
    EvaluationOver,
    EvaluationRepeated,
    RowsEvaluated,
)

CARRIED = (
    "Make a new model, optimizer and scheduler for each split: a model that goes on to the next split is trained on "
    "rows that it was, or will be, evaluated on."
)
"""What to do where the split is right and the model is not new."""


class EvaluatedOnTrainingRows(Check):
    """The evaluation uses training rows.

    ## Why is this a bug?
    A model knows the rows that it was trained on: the result says how well it remembers, not how well it will do on new
    rows, and it keeps rising long after the model has begun to overfit.

    ## What to do
    Evaluate on the validation split, and split the rows once, before anything else.

    ## When it is right
    An evaluation on the training rows alongside one on other rows, to compare the two, is not reported. Neither are the
    folds of a cross-validation, in which each model has rows of its own, or a few texts that occur in both splits. A
    pass over the training rows that reads what the model makes of them, without a metric or a mean loss (features to
    cluster, a threshold for what is unusual, the loss of each row), is not an evaluation.

    Rows that come from no loader, or change on their way to the model, are known by what the model is given. Where all
    of them were trained on, or all that were trained on are among them, nothing is reported; where some were, it is a
    warning, since a row may be in two splits for a reason. Rows that were trained on and come first, or last, in calls
    of their own may be a training score that the same line computes.
    """

    def judge(self, fact: RowsEvaluated) -> Verdict:
        if not fact.trained:
            return HELD
        what = "all" if fact.trained == fact.rows else str(fact.trained)
        return Found(
            expected="evaluation rows that were not trained on",
            observed=f"{what} of the {fact.rows} evaluation rows {'was' if fact.trained == 1 else 'were'} trained on"
            + (" in another split: the script goes on with the same model" if fact.carried else ""),
            hint=CARRIED if fact.carried else None,
            may_be_meant=fact.by_content,
        )


class EvaluationAugmented(Check):
    """The evaluation rows are augmented at random, so each evaluation sees different inputs.

    ## Why is this a bug?
    `random_split` and `Subset` select rows of a dataset and keep its transform. An augmentation that was meant for the
    training then shifts, crops and distorts the validation rows too: each evaluation is on different inputs, harder
    than those that the model will meet, and the best epoch is the one with the luckiest draw. The same comes of a
    random crop or flip in the transform of a test set of its own.

    ## What to do
    Give the validation split a dataset without the augmentation. Ignore this if you want to evaluate on augmented rows.

    Make the dataset twice, once with the training's transform and once without, and take the same indices of each.

    ## When it is right
    Ignore this warning if you measure robustness against the changes, or if the task is to undo them. Only datasets of
    an input and a class are looked at, and only if training and evaluation share one, or if a row has most of its
    values again in other places, as a shifted, flipped or cropped one does.

    ## References
    - https://discuss.pytorch.org/t/120835
    """

    severity = "warning"

    def judge(self, fact: EvaluationRepeated) -> Verdict:
        if not fact.changed:
            return HELD
        shares = fact.shares_dataset and fact.changed == fact.rows
        if not shares and not fact.moved:
            return NOTHING_TO_JUDGE
        how = (
            "training and evaluation share one dataset" if shares else "most of their values have moved to other places"
        )
        return Found(
            expected="the same rows in each evaluation",
            observed=f"{fact.changed} of the {fact.rows} rows of the first batch have changed by the next evaluation, "
            f"but not their classes; {how}",
        )


class EvaluationIncomplete(Check):
    """An evaluation leaves out some of its rows or counts some of them twice.

    ## Why is this a bug?
    The result is for a different set of rows from the one it is compared with: the first batch, all but the last, or
    whatever was drawn. On a small validation split, a few rows are worth a point or two.

    ## What to do
    Go through the whole evaluation set, each row once: a DataLoader without drop_last and without a random sampler, in
    a loop without break or return.

    ## When it is right
    Looking at a batch is not an evaluation unless something like a loss or an accuracy is computed from it, and rows
    that are also trained on are not looked at. Neither is an estimate: several batches, one that is drawn anew each
    time, or as many as a condition lets the loop take. To evaluate on only part of the rows during the training, for
    speed, draw that part at random, or select it once (`torch.utils.data.Subset`) and go through all of it.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
    """

    needs = "evaluation over a DataLoader"

    def judge(self, fact: EvaluationOver) -> Verdict:
        expected = "each evaluation row once"
        if fact.dropped:
            return Found(
                expected,
                observed=f"drop_last leaves out {fact.dropped} of {fact.rows} rows",
                hint="Remove drop_last from the evaluation's DataLoader.",
            )
        if fact.exhausted and 2 <= fact.forwards < fact.batches:
            return Found(
                expected,
                observed=f"the model was called for {fact.forwards} of {fact.batches} batches",
                hint="Check the code between DataLoader and model: a prefetcher must also yield its last batch.",
            )
        if fact.with_replacement:
            return Found(
                expected,
                observed="the rows are drawn with replacement",
                hint="Remove the sampler from the evaluation's DataLoader.",
            )
        return HELD if fact.exhausted else NOTHING_TO_JUDGE

    def judge_left(self, fact: EvaluationLeft) -> Verdict:
        return Found(
            expected=f"an evaluation of all {fact.planned} batches",
            observed="the loop stops after the first batch",
            hint="Remove the break or return inside the loop.",
        )
