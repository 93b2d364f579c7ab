from __future__ import annotations

import math
import re

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Held, NothingToJudge, Verdict
from harness.watch.checks.metrics.observations.numbers_of_ranks import NumberOfRanks
from harness.watch.events import Reported, Scored
from harness.watch.facts.reported_numbers import OTHERS, NumberReported, kind_of, numbers_in

MUCH = 0.5
"""Standard errors by which a mean of batches must be off: with less, the choice of the rows changes it far more."""


NAMED = ("precision", "recall", "mse", "rmse", "mae")
"""What is taken for one another."""

FINITE = ("accuracy", "loss", "mse", "rmse", "mae", "error rate")
"""Metrics that have a value wherever there are rows."""

NAN, STANDS_FOR = re.compile(r"(?<![\w.])[-+]?nan(?!\w)", re.I), "918273645"
"""How NaN is printed, and a number that is looked for in its place."""

BATCHED = ("accuracy", "error rate", "precision", "recall", "f1", "rmse", "perplexity")
"""Metrics of which a mean of batches is off."""


def _unless(fact: NumberReported, seen: bool = True) -> Verdict:
    """The verdict on a number that no mistake of the kind gives; ``seen`` says whether one would have been seen."""
    if fact.formula is None or not seen or fact.of_training:
        return NOTHING_TO_JUDGE
    return Held(f"{fact.name} {fact.number:g}, {fact.formula}")


def _expected(fact: NumberReported) -> str:
    right = "" if math.isnan(fact.right) else f", {fact.right:.4g}"
    return f"{fact.name} over the whole evaluation{right}, each row counted once"


def _observed(fact: NumberReported) -> str:
    return f"{fact.number:g}, which is {fact.mistake}{_times(fact.rounds)}"


def _times(rounds: int) -> str:
    return f", in {rounds} reports" if rounds > 1 else ""


class OfOtherRows(Check):
    """A reported number is not computed from exactly the rows that were evaluated.

    It comes from the last batch alone, from one of several processes, from the previous evaluation, from all
    evaluations so far, or it is divided by something other than the number of rows.

    ## Why is this a bug?
    The model is chosen, and the result published, by a number that says something else: counters that are never set to
    0 make a model look as it was on average, a sum that is divided by the length of another dataset is off by a factor,
    and the last batch alone is a few rows.

    ## What to do
    Reset the counters before each evaluation, add up hits (or losses times rows) over the batches, and divide by the
    number of rows counted.

    ## When it is right
    The numbers that a script prints or logs are compared with what it evaluated. A number is reported here only if its
    name says what it is, no right formula gives it, one mistaken formula gives all of its digits each time, and these
    are so many that chance has less than one in 10,000. An accuracy of the last batch takes two or three reports, for
    as many other rows may be right once. A number that is meant like this needs another name.

    ## References
    - https://scikit-learn.org/stable/modules/model_evaluation.html
    """

    new_since = "0.3.0"

    def judge(self, fact: NumberReported) -> Verdict:
        if fact.mistake is not None and fact.group == "rows":
            return Found(_expected(fact), _observed(fact))
        return _unless(fact)

    def judge_ranks(self, fact: NumberOfRanks) -> Verdict:
        if fact.mistake is None:
            return HELD
        return Found(
            expected=f"{fact.name} of the rows of all {fact.ranks} ranks, {fact.right:.4g}",
            observed=f"{fact.number:g}, which is {fact.mistake}{_times(fact.rounds)}",
            hint="Add up hits (or losses times rows) and the number of rows over all ranks (all_reduce, "
            "gather_for_metrics, sync_dist=True), and divide once.",
        )


class OtherThanNamed(Check):
    """A reported number is a different metric from the one that its name says.

    ## Why is this a bug?
    Precision and recall change places where predictions and labels do; a mean square that is called RMSE is in other
    units. A threshold of 0.5 is right for probabilities and not for logits, the likeliest of the wrong axis is no
    class, and a language model says at each place what comes next. All of them look plausible, and are compared with
    numbers of others.

    ## What to do
    Check the order of the arguments (scikit-learn takes labels first, Evaluate takes names) and the square root. For
    one batch, compare predictions and labels by hand: their shapes, the axis of argmax, and which class is meant.

    ## When it is right
    Where the name means something else. A number is reported here only if no formula for its name gives it, and the
    other one gives all of its digits each time.

    ## References
    - https://scikit-learn.org/stable/modules/generated/sklearn.metrics.precision_score.html
    """

    new_since = "0.3.0"

    def judge(self, fact: NumberReported) -> Verdict:
        if fact.mistake is not None and fact.group in ("name", "taken"):
            return Found(_expected(fact), _observed(fact))
        return _unless(fact, fact.kind in NAMED)


class MeanOfBatches(Check):
    """A reported number is the mean of batch values, though the batches should not count equally.

    ## Why is this a bug?
    A batch of three rows counts as much as one of 32. The number changes with the batch size and the order of the rows,
    and of F1, precision, recall, roots and perplexity the mean over batches is no value of the whole at all.

    ## What to do
    Add up hits (or losses times rows) and divide once at the end; give a metric all predictions at once.

    ## When it is right
    If all batches have the same size, nothing is off. A number is reported here only if it is off by more than half of
    its standard error, which the choice of the rows would have changed it by.

    ## References
    - https://huggingface.co/docs/evaluate/a_quick_tour
    """

    severity = "warning"
    new_since = "0.3.0"

    def judge(self, fact: NumberReported) -> Verdict:
        if fact.mistake is None or fact.group != "batches":
            return _unless(fact, fact.kind in BATCHED)
        if fact.off < MUCH:
            return NothingToJudge("as a mean of batches the number is hardly another, with batches of nearly one size")
        return Found(_expected(fact), _observed(fact))


class NotANumber(Check):
    """A reported number of an evaluation is NaN.

    ## Why is this a bug?
    NaN is less than nothing and greater than nothing: `loss < best` is never true again, so that the first checkpoint
    stays the best one, or the last one does, and early stopping waits for ever. A mean of nothing, a logarithm of 0
    and a division by a count that is 0 give it, and one batch is enough to spoil the whole mean.

    ## What to do
    Print the loss of each batch of the evaluation, and look at the rows of the one that is not finite: a batch without
    targets (all of them `ignore_index`), a probability of 0, an empty split.

    ## When it is right
    Only losses, accuracies and errors are reported, and only after a model was evaluated: a precision or an IoU of a
    class that does not occur has no value. Infinity is not: scripts begin the best loss so far with it.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "loss, accuracy or error that is reported after an evaluation"

    def begin(self) -> None:
        self._evaluated = False
        self._found = False

    def on_scored(self, event: Scored) -> None:
        self._evaluated = True

    def on_reported(self, event: Reported) -> None:
        if not self._evaluated or self._found or (self.looked and not NAN.search(event.text)):
            return
        for number in numbers_in(NAN.sub(STANDS_FOR, event.text)):
            if kind_of(number.name) in FINITE and not OTHERS.search(number.name):
                self._found = number.value == float(STANDS_FOR)
                self.says(self.judge(number.name, is_nan=self._found), event.where, event.at.updates_made)
                if self._found:
                    return

    @staticmethod
    def judge(name: str, *, is_nan: bool) -> Verdict:
        """The name of a number, and whether it is NaN."""
        if not is_nan:
            return Held(f"{name} is a number")
        return Found(expected=f"{name} that is a number", observed=f"{name} is NaN")
