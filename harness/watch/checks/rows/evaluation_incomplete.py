from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from torch.utils.data import RandomSampler, SequentialSampler

from harness.watch.asking import leaves_after_one
from harness.watch.check import Check
from harness.watch.events import End, Pass, PassBegins, PassEnds
from harness.watch.facts.datasets import base, length
from harness.watch.facts.passes import Alike, Passes, latest_of
from harness.watch.facts.samplers import batch_sampler, has_torchs_own_sampler, row_sampler
from harness.watch.facts.scored_passes import ScoredPasses
from harness.watch.monitor import Monitor


class EvaluationIncomplete(Check):
    """An evaluation leaves out some of its rows, or counts some of them twice.

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
    formerly = ("rows::every-evaluation-row-once",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.passes = monitor.fact(Passes)
        self.scored = monitor.fact(ScoredPasses)
        self.updates_at_end: WeakKeyDictionary[Pass, int] = WeakKeyDictionary()

    def on_pass_begins(self, event: PassBegins) -> None:
        self._look_at_used()

    def on_pass_ends(self, event: PassEnds) -> None:
        self.updates_at_end[event.of] = self.monitor.updates_made
        self._look_at_used()
        if not event.of.exhausted and not event.of.trains and event.of.forwards:
            self._look_at(event.of)

    def on_end(self, event: End) -> None:
        self._look_at_used()
        if self.monitor.complete:
            self._left_early()

    def _look_at_used(self) -> None:
        used = self.passes.used
        if used is not None and not used.trains and used.forwards:
            self._look_at(used)

    def _look_at(self, of: Pass) -> None:
        self.looked |= of.exhausted
        batches, sampler = batch_sampler(of.loader), row_sampler(of.loader)
        size = length(sampler) or length(of.dataset)
        # One batch now and then, with updates in between, is an estimate, whatever the loader leaves out.
        whole = of.updates_before == self.updates_at_end.get(of, self.monitor.updates_made)
        dropped = size % batches.batch_size if whole and size and getattr(batches, "drop_last", False) else 0
        if dropped:
            self._incomplete(
                of,
                f"drop_last leaves out {dropped} of {size} rows",
                "Leave drop_last out of the evaluation's DataLoader.",
            )
        elif of.exhausted and 2 <= of.forwards < of.batches:
            self._incomplete(
                of,
                f"the model was called for {of.forwards} of {of.batches} batches",
                "Look at what lies between DataLoader and model: a prefetcher must give its last batch too.",
            )
        elif isinstance(sampler, RandomSampler) and sampler.replacement:
            self._incomplete(
                of,
                "the rows are drawn with replacement",
                "Leave the sampler out of the evaluation's DataLoader.",
            )

    def _incomplete(self, of: Pass, observed: str, hint: str) -> None:
        self.found(expected="each row of the evaluation once", observed=observed, hint=hint, where=of.where)

    def _left_early(self) -> None:
        """Evaluations that cannot get beyond their first batch; those that could are meant to be estimates."""
        trained = [each.first.dataset for each in self.passes.training()]
        loaders: dict[int, list[Alike]] = {}
        for each in self.passes.evaluating():
            loaders.setdefault(id(each.first.loader), []).append(each)
        for evaluations in loaders.values():
            last = latest_of(evaluations)
            whole = any(each.first.exhausted or each.first.shortened for each in evaluations)
            if whole or not last.updates_before or not self._is_evaluation(last, trained):
                continue
            if last.planned and last.forwards == 1 < last.planned and leaves_after_one(last.where):
                self.found(
                    expected=f"an evaluation of all {last.planned} batches",
                    observed="it is left after the first",
                    hint="Take out the break or return inside the loop.",
                    where=last.where,
                )

    def _is_evaluation(self, of: Pass, trained: Iterable[Any]) -> bool:
        """Whether it says how good the model is on rows of its own, which are the same ones each time."""
        in_order = has_torchs_own_sampler(of.loader) and isinstance(row_sampler(of.loader), SequentialSampler)
        return in_order and of in self.scored.all and not any(_is_part(of.dataset, each) for each in trained)


def _is_part(dataset: Any, other: Any) -> bool:
    """Whether all its rows are the other's."""
    (one, within), (whole, rows) = base(dataset), base(other)
    return one == whole and (rows is None or (within is not None and within <= rows))
