from __future__ import annotations

from torch.utils.data import RandomSampler

from harness.watch.check import Check
from harness.watch.events import End, Pass, PassBegins, PassEnds
from harness.watch.facts.datasets import length
from harness.watch.facts.passes import Alike, Passes, latest_of
from harness.watch.facts.samplers import batch_sampler, row_sampler
from harness.watch.monitor import Monitor


class EvaluationIncomplete(Check):
    """An evaluation leaves out some of its rows, or counts some of them twice.

    ## Why is this a bug?
    The result is that of another set of rows than the one it is compared with: of the first batch, of all but the last,
    or of whatever was drawn. On a small validation split a few rows are a point or two.

    ## What to do
    Go through the whole evaluation set, each row once: a DataLoader without drop_last and without a random sampler, in
    a loop without break or return.

    ## When it is right
    Looking at a batch before the training begins is no evaluation, and a loader that trains too is not looked at. Where
    the evaluation during the training is on a part of the rows for speed, select that part once
    (`torch.utils.data.Subset`) and go through all of it.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
    """

    id = "rows::evaluation-incomplete"
    needs = "evaluation over a DataLoader"
    formerly = ("rows::every-evaluation-row-once",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.passes = monitor.fact(Passes)

    def on_pass_begins(self, event: PassBegins) -> None:
        self._look_at_used()

    def on_pass_ends(self, event: PassEnds) -> None:
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
        size, batches, sampler = length(of.dataset), batch_sampler(of.loader), row_sampler(of.loader)
        dropped = size % batches.batch_size if size and getattr(batches, "drop_last", False) else 0
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
        """Evaluations that never come to their end; a look at a batch before the training is none."""
        trained = {id(each.first.loader) for each in self.passes.training()}
        loaders: dict[int, list[Alike]] = {}
        for each in self.passes.evaluating():
            loaders.setdefault(id(each.first.loader), []).append(each)
        for loader, evaluations in loaders.items():
            last = latest_of(evaluations)
            whole = any(each.first.exhausted or each.first.shortened for each in evaluations)
            if loader in trained or whole or not last.updates_before:
                continue
            if last.planned and last.forwards < last.planned:
                self.found(
                    expected=f"an evaluation of all {last.planned} batches",
                    observed=f"it is left after {last.forwards}",
                    hint="Take out the break or return inside the loop.",
                    where=last.where,
                )
