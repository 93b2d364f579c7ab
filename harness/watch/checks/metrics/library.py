"""Metrics that a library computes over an evaluation whose rows and logits are known."""

from __future__ import annotations

from collections import Counter

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.metrics.observations.metric_calls import Computed, OtherRowsScored


class MicroF1IsAccuracy(Check):
    """F1 is micro-averaged, which makes it the same number as accuracy.

    ## Why is this a bug?
    With one label for each row, every wrong prediction is one false positive and one false negative: precision, recall,
    F1 and accuracy, all averaged over the rows, are the same number. A rare class that is never predicted does not show
    in it.

    ## What to do
    Choose the average that the benchmark reports. Ignore this if you know that it equals accuracy.

    ## When it is right
    Some benchmarks ask for micro-averaged F1 by name; report it once, and ignore this warning. If rows have several
    labels, it differs from the accuracy and is not reported.

    ## References
    - https://scikit-learn.org/stable/modules/model_evaluation.html#multiclass-and-multilabel-classification
    - https://github.com/huggingface/datasets/issues/3639
    """

    needs = "library's F1 over an evaluation"
    severity = "warning"

    def judge(self, fact: Computed) -> Verdict:
        if not fact.comparable or "f1" not in fact.metric:
            return NOTHING_TO_JUDGE
        if fact.options.get("average") != "micro":
            return HELD
        return Found(expected="average='binary' or 'macro'", observed="average='micro' makes F1 equal to accuracy")


class Misaligned(Check):
    """A metric compares predictions with the references of other rows.

    ## Why is this a bug?
    Each prediction is compared with the label of another row, so the result is about what guessing would give, however
    good the model is. Swapped arguments are harder to see: the accuracy stays the same, while precision and recall
    change places and F1 of several classes changes.

    ## What to do
    Collect both from the same batch, in the same order: metric(predictions=..., references=...).

    ## When it is right
    Shuffled evaluations are not reported if predictions and references are shuffled together.
    """

    def judge(self, fact: Computed) -> Verdict:
        if not fact.comparable:
            return NOTHING_TO_JUDGE
        observed = _misaligned(fact)
        if observed is None:
            return HELD
        return Found(expected="predictions and references of the same rows in the same order", observed=observed)


class WrongPredictions(Check):
    """The predictions given to a metric are not the classes with the model's highest logits.

    ## Why is this a bug?
    What is measured is not the model. An argmax over the wrong dimension, the least likely class, the labels in place
    of the predictions, or predictions that another model made: a number comes out, and it says nothing.

    ## What to do
    Take the argmax over the class dimension of the logits, from the same forward pass.

    ## When it is right
    Predictions that some threshold between two classes explains, or some number added to the logits of each class, are
    not reported: rare classes are often made likelier on purpose. Neither are predictions of an earlier evaluation of
    the same rows (the best epoch's), or of several together (an ensemble): if all evaluations agree on a row's class,
    so do these. Outputs whose width differs from the input of `cross_entropy` or `nll_loss` are features and not looked
    at.
    """

    def judge(self, fact: Computed) -> Verdict:
        if not fact.comparable or fact.references != fact.labels or not fact.of_classes:
            return NOTHING_TO_JUDGE
        predictions, best = fact.predictions, fact.best
        if fact.in_another_order or fact.by_threshold or not _differ_where_evaluations_agree(fact):
            return HELD
        wrong = sum(one != other for one, other in zip(predictions, best, strict=True))
        return Found(
            expected="logits.argmax(dim=-1) of each row",
            observed=f"{wrong} of {fact.rows} predictions are a different class, and no threshold explains them",
        )


class RowsMissingOrRepeated(Check):
    """A metric is computed from fewer or more rows than the evaluation has.

    ## Why is this a bug?
    The reported number is that of the last batch, of several epochs at once, or of an evaluation in which the rows that
    fill up the last batch of several processes count twice.

    ## What to do
    Give the metric every batch exactly once; with several processes, use gather_for_metrics.

    ## When it is right
    A metric of each batch, or of one part of the rows after the other, is not reported. Neither is one of a part that
    is not a contiguous stretch of the evaluation (a class, a language), or of rows other than the evaluation's: those
    trained on, or those of all folds together. Several forward passes of a batch, as in an ensemble, are not looked at.

    ## References
    - https://github.com/huggingface/accelerate/issues/350
    - https://github.com/huggingface/transformers/issues/30767
    """

    explains = ("metrics::of-other-rows",)

    def judge(self, fact: Computed) -> Verdict:
        return HELD

    def judge_rows(self, fact: OtherRowsScored) -> Verdict:
        expected = f"{fact.rows} rows, as many as the evaluation has"
        if fact.gathered:
            hint = "Gather with accelerator.gather_for_metrics, which drops the rows that pad the last batch."
            return Found(expected=expected, observed=f"{fact.given} rows", hint=hint)
        return Found(expected=expected, observed=f"{'' if fact.given > fact.rows else 'only '}{fact.given} rows")


def _misaligned(computed: Computed) -> str | None:
    """What is in whose place; None where all is in its own."""
    predictions, references, labels, best = computed.predictions, computed.references, computed.labels, computed.best
    if references == best and predictions == labels and best != labels:
        return "predictions and references are swapped"
    if references != labels and Counter(references) == Counter(labels) and predictions == best:
        return "the references are in a different order from the predictions"
    if references == labels and computed.in_another_order:
        return "the predictions are in a different order from the references"
    return None


def _differ_where_evaluations_agree(computed: Computed) -> bool:
    """Whether any row has another class than the one that was likeliest in all evaluations of it."""
    agreed = computed.best if computed.agreed is None else computed.agreed.tolist()
    rows = zip(computed.predictions, computed.best, agreed, strict=True)
    return any(prediction != best == always for prediction, best, always in rows)
