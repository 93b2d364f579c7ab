"""Errors in the units of a scaler, of targets that it has scaled."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from harness.watch.bounded import First
from harness.watch.check import Check, Found, Held, NothingToJudge, Verdict
from harness.watch.events import LossCall, ScalerFitted
from harness.watch.facts.reported_numbers import NumberReported
from harness.watch.host import on_host

IN_UNITS = ("rmse", "mae")
"""Kinds of numbers that are in the units of the targets."""

SCALED_BACK = (
    "inverse_transform",
    "scale_",
    "mean_",
    "center_",
    "var_",
    "data_min_",
    "data_max_",
    "data_range_",
    "max_abs_",
)
"""What a script reads of a scaler that goes back to the units."""


SAYS_SO = re.compile(r"scal|norm|stand|std|z.?score")
"""Names of numbers that are meant to be in no units."""


class OfScaledTargets(Check):
    """An error is reported of targets that a scaler has scaled, and nothing scales them back.

    ## Why is this a bug?
    RMSE and MAE are read in the units of what is predicted. Of scaled targets they are in standard deviations of the
    training rows, or in parts of their range: 0.4 may be an error of 24. They look good, and compare with nothing.

    ## What to do
    Scale both back before they are compared: `scaler.inverse_transform(predictions)`, and the same for the targets, or
    use the targets as they were.

    ## When it is right
    Only scalers of scikit-learn that are fitted on one column are seen. Nothing is reported if the script scales
    anything back, or reads what the scaler has learned. Ignore this warning if an error in standard deviations is what
    you mean, and say so in its name.

    ## References
    - https://scikit-learn.org/stable/modules/compose.html#transforming-target-in-regression
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "error that is reported of targets that a scaler of scikit-learn has scaled"

    def begin(self) -> None:
        self._fitted = First[tuple[ScalerFitted, np.ndarray]](4)  # as many as a script has, with the values they make
        self._of_targets: ScalerFitted | None = None
        self._back: bool | None = None
        """Whether the script scales back, once that was asked."""

    def on_scaler_fitted(self, event: ScalerFitted) -> None:
        if event.rows.shape[1] == 1:
            self._fitted.append((event, _single(event.scaler.transform(event.rows))))

    def on_loss_call(self, event: LossCall) -> None:
        if self._fitted and self._of_targets is None and event.at.sampled and event.target.is_floating_point():
            targets = _single(on_host(event.target.detach()).float().numpy())
            if len(targets) > 1:
                among = (fitted for fitted, values in self._fitted if np.isin(targets, values).all())
                self._of_targets = next(among, None)

    def on_number(self, fact: NumberReported) -> None:
        if self._of_targets is None or fact.kind not in IN_UNITS or fact.of_training or self.looked:
            return
        if SAYS_SO.search(fact.name):
            return
        if self._back is None:
            self._back = bool(self.monitor.locator.read_names(SCALED_BACK))
        scaler, rows = self._of_targets.scaler, np.asarray(self._of_targets.rows, dtype=float)
        unit = float(rows.std() / max(float(np.asarray(scaler.transform(self._of_targets.rows)).std()), 1e-12))
        if self._back or fact.formula is not None:  # else it may have been scaled back by hand
            verdict = self.judge(fact.name, fact.number, type(scaler).__name__, unit, scaled_back=self._back)
            self.says(verdict, fact.where)

    @staticmethod
    def judge(name: str, number: float, scaler: str, unit: float, *, scaled_back: bool) -> Verdict:
        """A number of scaled targets, the scaler, how much of the targets is one unit of it, and whether the script
        scales back."""
        if scaled_back:
            return Held(f"the script goes back to the units of the targets that {scaler} has scaled")
        if 0.5 < unit < 2:
            return NothingToJudge("the scaler hardly changes the scale of the targets")
        return Found(
            expected=f"{name} in the units of the targets, {number * unit:.3g}",
            observed=f"{number:g}, of targets that {scaler} has scaled: 1 stands for {unit:.3g} of theirs",
        )


def _single(values: Any) -> np.ndarray:
    """The different numbers, as a model is given them, in single precision."""
    return np.unique(np.asarray(values, dtype=np.float32))
