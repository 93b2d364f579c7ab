from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from numbers import Real
from typing import Any

from harness.watch.check import Check
from harness.watch.events import TrainerMade

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
    names differ only in `chosen` and `rejected` (`score_chosen`, `score_rejected`).

    ## References
    - https://huggingface.co/docs/trl/dataset_formats
    """

    id = "inputs::preference-swapped"
    severity = "warning"
    status = "new"
    needs = "Trainer with scores of chosen and rejected answers"
    in_windows = "first"

    def on_trainer_made(self, event: TrainerMade) -> None:
        dataset: Any = getattr(event.trainer, "train_dataset", None)
        for chosen, rejected in _scores(dataset):
            rows = islice(dataset, MOST_ROWS)
            pairs = [(row[chosen], row[rejected]) for row in rows if chosen in row and rejected in row]
            differ = [(one, other) for one, other in pairs if isinstance(one, Real) and one != other]
            if len(differ) < MIN_ROWS:
                continue
            self.looked = True
            lower = sum(one < other for one, other in differ)
            if 2 * lower > len(differ):
                self.found(
                    expected=f"{chosen} above {rejected}",
                    observed=f"it is below in {lower} of {len(differ)} rows",
                    where=event.where,
                )
                return


def _scores(dataset: Any) -> Iterator[tuple[str, str]]:
    """Columns of numbers of the chosen answer, each with that of the rejected one."""
    try:
        first = dataset[0]
    except Exception:  # noqa: BLE001, a stream, or a dataset of the user's own: there is nothing to look at
        return
    if not isinstance(first, Mapping):
        return
    for name, value in first.items():
        other = first.get(name.replace("chosen", "rejected")) if isinstance(name, str) and "chosen" in name else None
        if all(isinstance(each, Real) and not isinstance(each, bool) for each in (value, other)):
            yield name, name.replace("chosen", "rejected")
