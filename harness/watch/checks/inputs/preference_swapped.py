from __future__ import annotations

from numbers import Real
from typing import Any

from harness.watch.check import Check
from harness.watch.events import TrainerMade
from harness.watch.facts.datasets import stored_columns

MOST_ROWS = 512
"""Rows whose scores are read, the first ones."""

MIN_ROWS = 16
"""Rows with two scores that differ. By reasoning: of fewer, the greater part says little."""


class PreferenceSwapped(Check):
    """Most rejected answers of a preference dataset have a higher score than the chosen ones beside them.

    ## Why is this a bug?
    DPO and reward models learn to prefer what is called chosen. If the two were unpacked in the wrong order, or sorted
    in the other direction, the loss falls as it should, and the model learns to give the worse answer.

    ## What to do
    Exchange the two columns, or sort the answers by their scores in descending order before the first becomes `chosen`.

    ## When it is right
    Scores for which lower is better (a loss, a distance, a rank). Rows cannot be judged without numeric columns whose
    names differ only in `chosen` and `rejected` (`score_chosen`, `score_rejected`), nor where the dataset is of a class
    of your own: reading it would call your code.

    ## References
    - https://huggingface.co/docs/trl/dataset_formats
    """

    severity = "warning"
    status = "new"
    needs = "Trainer with scores of chosen and rejected answers"
    in_windows = "first"

    def on_trainer_made(self, event: TrainerMade) -> None:
        dataset = getattr(event.trainer, "train_dataset", None)
        columns = stored_columns(dataset, lambda name: "chosen" in name or "rejected" in name, MOST_ROWS)
        for name, values in columns.items():
            other = name.replace("chosen", "rejected")
            pairs = zip(values, columns.get(other, ()), strict=False)
            differ = [(one, two) for one, two in pairs if _are_scores(one, two) and one != two]
            if len(differ) < MIN_ROWS:
                continue
            self.looked = True
            lower = sum(one < two for one, two in differ)
            if 2 * lower > len(differ):
                self.found(
                    expected=f"{name} above {other}",
                    observed=f"it is below in {lower} of {len(differ)} rows",
                    where=event.where,
                )
                return


def _are_scores(*values: Any) -> bool:
    return all(isinstance(each, Real) and not isinstance(each, bool) for each in values)
