from __future__ import annotations

from torch.utils.data import WeightedRandomSampler

from harness.watch.check import Check
from harness.watch.events import PassEnds
from harness.watch.facts.datasets import length
from harness.watch.facts.samplers import row_sampler

MAX_SHARE_OF_WEIGHTS = 0.2
"""Largest number of a sampler's weights, as a share of the rows, that is one of classes and not of rows. Neither half
nor double of it changes a verdict of the corpus."""


class WeightsOfClasses(Check):
    """A `WeightedRandomSampler` has a weight for each class, and so draws only the first rows.

    ## Why is this a bug?
    The sampler takes its weights to be row weights. With one for each of two classes, it draws the first two rows of
    the dataset again and again, and no others; the loss falls to 0.

    ## What to do
    Give the sampler the weight of each row's class: `weights[labels]`.

    ## When it is right
    A sampler with a weight for each row, or for most of them, is not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.WeightedRandomSampler
    """

    needs = "WeightedRandomSampler"
    formerly = ("rows::repeated-or-skipped", "rows::every-row-once")
    explains = ("schedule::may-be-too-long", "schedule::wrong-length")

    def on_pass_ends(self, event: PassEnds) -> None:
        sampler, rows = row_sampler(event.of.loader), length(event.of.dataset)
        if not event.of.trains or not rows or not isinstance(sampler, WeightedRandomSampler):
            return
        self.looked = True
        weights = len(sampler.weights)
        if weights < MAX_SHARE_OF_WEIGHTS * rows:
            self.found(
                expected=f"a weight for each of {rows} rows",
                observed=f"the sampler has {weights} weights, so it draws only the first {weights} rows",
                where=event.of.where,
                update=self.monitor.updates_made,
            )
