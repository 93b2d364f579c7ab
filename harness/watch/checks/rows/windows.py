from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.rows.observations.rows_of_slices import MIN_SHARE
from harness.watch.checks.rows.observations.windows import WindowsSplit


class WindowsOverlap(Check):
    """Windows of the evaluation overlap windows of the training: they were split at random, and not in time.

    ## Why is this a bug?
    Each window of a series shares all but one of its values with the next one. Drawn at random, nearly every window of
    the validation set lies between two that were trained on, its targets among them: the score says how well the model
    remembers, and not how well it will do on what comes next.

    ## What to do
    Cut the series in time first, then make windows of each part; leave a gap of one window between the parts.

    With one dataset, `Subset(data, range(cut - length))` and `Subset(data, range(cut, len(data)))` are such parts.

    ## When it is right
    Ignore this warning if the model is to fill in what lies between known values. Rows are taken for windows only if
    each that was seen is the one before it, moved by one step; windows with larger steps, and splits that share only
    the windows at a cut, are not reported.

    ## References
    - https://scikit-learn.org/stable/modules/cross_validation.html#time-series-split
    """

    severity = "warning"
    new_since = "0.4.0"

    def judge(self, fact: WindowsSplit) -> Verdict:
        if fact.overlapping < MIN_SHARE * fact.rows:
            return HELD
        return Found(
            expected="windows of an evaluation that share no value with those of the training",
            observed=f"{fact.overlapping} of the {fact.rows} windows of {fact.length} steps are one step from a window "
            "that was trained on",
        )
