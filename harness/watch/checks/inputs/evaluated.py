"""What a model is evaluated on, beside what it was trained on."""

from __future__ import annotations

from harness.findings import between
from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.inputs.observations.evaluated_rows import (
    MIN_COLUMNS,
    Moments,
    MomentsEvaluated,
    TokensEvaluated,
)
from harness.watch.checks.inputs.observations.input_scales import ColumnsEvaluated, InputEvaluated

MIN_ROWS = 8
"""Rows that must have been evaluated: by reasoning, fewer are somebody's single question."""

MIN_TRAINED = 2000
"""Tokens of training that show what the model knows."""

MIN_EVALUATED = 200
"""Tokens of an evaluation."""

MIN_SHARE = 0.1
"""Smallest share of an evaluation's tokens that one number must have which training never had. New words are many
different ones."""

MIN_STANDARDISED = 30
"""Rows of an evaluation from which on moments of exactly 0 and 1 are no accident: those of rows that were standardised
with others' differ from them by about 1 / sqrt(rows)."""

MOMENT_ATOL = 2e-3
"""How near to 0 and 1 the moments must be, but for dividing by one row less. By reasoning: far below 1 / sqrt(rows)."""


class EvaluatedOnAnotherScale(Check):
    """The evaluation inputs are on a different scale from the training inputs.

    ## Why is this a bug?
    A model is fitted to inputs as they were in training. If these were scaled (pixels divided by 255, columns
    standardised) and the evaluation inputs were not, or the other way round, its answers are arbitrary. The score then
    says nothing about the model. No error is raised, because the shapes are correct.

    ## What to do
    Preprocess the evaluation rows exactly like the training rows: use one function for both, with the mean and
    deviation of the training rows and the same division.

    ## When it is right
    A deliberate test of how a model does far outside its training data, and a model that normalises all of its inputs.
    Scales are reported only if they differ by a factor of 20 for most rows, and columns that were standardised in
    training only if most of them are 4 deviations away: pixels of 0 to 1 against standardised ones are not reported.
    Neither are models that were also evaluated on inputs of the training scale (on the training rows, say), inputs that
    are all 0, masks, whole numbers such as token ids, or outputs from which no loss, metric or comparison of tensors
    was computed.

    ## References
    - https://scikit-learn.org/stable/common_pitfalls.html (inconsistent preprocessing)
    """

    severity = "warning"

    def judge(self, fact: InputEvaluated) -> Verdict:
        apart, trained = fact.apart, between(*fact.trained)
        if apart is None or apart.rows < MIN_ROWS:
            return HELD
        return Found(
            expected=f"{fact.name} on the training scale, where the root mean square of a row was {trained}",
            observed=f"evaluation rows with a root mean square of {between(apart.smallest, apart.largest)}",
            update=apart.update,
        )

    def judge_columns(self, fact: ColumnsEvaluated) -> Verdict:
        if fact.far * 2 <= fact.columns:
            return NOTHING_TO_JUDGE
        return Found(
            expected=f"standardised columns of {fact.name}, as in training",
            observed=f"{fact.far} of {fact.columns} input columns have a different mean or standard deviation: "
            f"means of {fact.means}",
            update=fact.update,
        )


class EvaluatedOnUnknownTokens(Check):
    """The evaluation texts are full of a token that training never had, because they are preprocessed differently.

    ## Why is this a bug?
    If the training texts are lower-cased, stripped or split and the evaluation texts are not, words of the evaluation
    are no longer in the vocabulary. All of them become the unknown token, whose embedding was never trained.

    ## What to do
    Do all text preprocessing in one function, and use it for training and evaluation.

    ## When it is right
    Padding at the ends of rows, and tokens that occurred in training at any time, are not reported. Neither are new
    words that have their own ids.
    """

    since = "0.3.0"

    def judge(self, fact: TokensEvaluated) -> Verdict:
        enough = fact.trained >= MIN_TRAINED and fact.evaluated >= MIN_EVALUATED
        if not enough or fact.times < MIN_SHARE * fact.evaluated:
            return HELD
        return Found(
            expected="evaluation texts with tokens that also occur in training",
            observed=f"{fact.times} of {fact.evaluated} evaluation tokens are {fact.token}, which is none of the "
            f"{fact.trained} training tokens: it stands for unknown words, in texts that were not lower-cased, "
            "stripped or split like the training texts",
            update=fact.update,
        )


class StandardisedApart(Check):
    """The evaluation rows are standardised with their own mean and deviation instead of those of the training rows.

    ## Why is this a bug?
    This removes what distinguishes the test rows from the training rows: a cold month becomes an average one. The score
    is that of rows that do not exist, and a single new row could not be transformed at all.

    ## What to do
    Compute mean and deviation on the training rows, and transform all rows with them.

    ## When it is right
    Rows that are standardised with others, or one by one, have different moments and are not reported. Ignore this
    warning if each part is meant to be standardised by itself, such as the recordings of different subjects.

    ## References
    - https://scikit-learn.org/stable/common_pitfalls.html (inconsistent preprocessing)
    """

    new_since = "0.3.0"
    severity = "warning"

    def judge(self, fact: MomentsEvaluated) -> Verdict:
        enough = [each for each in fact.inputs if each.rows >= MIN_STANDARDISED and not each.trained]
        for column in enough:
            if _are_standardised(column):
                return Found(
                    expected="evaluation rows standardised with the mean and deviation of the training rows",
                    observed=f"each of {len(column.total)} columns has mean 0 and deviation 1 over the {column.rows} "
                    "evaluation rows: they were standardised with their own",
                    where=column.where,
                    update=fact.update,
                )
        return HELD if enough else NOTHING_TO_JUDGE


def _are_standardised(moments: Moments) -> bool:
    """Whether all columns that vary have exactly the mean 0 and the deviation 1."""
    mean = moments.total / moments.rows
    variance = moments.squares / moments.rows - mean.square()
    ones = [variance, variance * moments.rows / (moments.rows - 1)]
    constant = variance < MOMENT_ATOL  # a column that does not vary
    if int((~constant).sum()) < MIN_COLUMNS or bool((mean.abs() > MOMENT_ATOL).any()):
        return False
    return any(bool(((one - 1).abs() <= MOMENT_ATOL)[~constant].all()) for one in ones)
