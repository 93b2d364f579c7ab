"""Evaluations that leave rows out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from torch.utils.data import RandomSampler, SequentialSampler

from harness.watch.asking import leaves_after_one
from harness.watch.bounded import First
from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.events import End, Pass, PassBegins, PassEnds
from harness.watch.facts.datasets import base, length
from harness.watch.facts.loaders import LoaderUnread
from harness.watch.facts.samplers import batch_sampler, has_torchs_own_sampler, row_sampler
from harness.watch.run.evaluations import Evaluation
from harness.watch.run.passes import Alike, Passes, latest_of


class EvaluationIncomplete(Check):
    """An evaluation leaves out some of its rows or counts some of them twice.

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

    def begin(self) -> None:
        self._passes = self.fact(Passes)
        self._scored: WeakSet[Pass] = WeakSet()
        self._updates_at_end: WeakKeyDictionary[Pass, int] = WeakKeyDictionary()
        self._dropping = First[tuple[Any, Verdict, str | None]](16)  # each keeps its loader alive
        """The first evaluations over loaders that leave rows out, with what is said of them."""

    def on_loader_unread(self, fact: LoaderUnread) -> None:
        if fact.kept:
            self.monitor.note(f"nothing was read from the DataLoader that was made at {fact.where}")

    def on_evaluation(self, fact: Evaluation) -> None:
        if fact.of is not None and fact.scored:
            self._scored.add(fact.of)

    def on_pass_begins(self, event: PassBegins) -> None:
        self._look_at_used()

    def on_pass_ends(self, event: PassEnds) -> None:
        self._updates_at_end[event.of] = self.monitor.updates_made
        self._look_at_used()
        if not event.of.exhausted and not event.of.trains and event.of.forwards:
            self._look_at(event.of)

    def on_end(self, event: End) -> None:
        self._look_at_used()
        trained = {id(each.first.loader) for each in self._passes.training()}
        for loader, verdict, where in self._dropping:
            if id(loader) not in trained:
                self.says(verdict, where)
        if event.at.complete:
            self._look_at_those_left()

    def _look_at_used(self) -> None:
        used = self._passes.used
        if used is not None and not used.trains and used.forwards:
            self._look_at(used)

    def _look_at(self, of: Pass) -> None:
        batches, sampler = batch_sampler(of.loader), row_sampler(of.loader)
        size = length(sampler) or length(of.dataset)
        # One batch now and then, with updates in between, is an estimate, whatever the loader leaves out.
        whole = of.updates_before == self._updates_at_end.get(of, self.monitor.updates_made)
        dropped = size % batches.batch_size if whole and size and getattr(batches, "drop_last", False) else 0
        replaced = isinstance(sampler, RandomSampler) and sampler.replacement
        verdict = self.judge(
            size,
            exhausted=of.exhausted,
            dropped=dropped,
            batches=of.batches,
            forwards=of.forwards,
            with_replacement=replaced,
        )
        if not dropped:
            self.says(verdict, of.where)
        else:
            self._dropping.append((of.loader, verdict, of.where))  # said at the end: it may be the loader to train with

    def _look_at_those_left(self) -> None:
        """Evaluations that cannot get beyond their first batch; those that could are meant to be estimates."""
        trained = [each.first.dataset for each in self._passes.training()]
        loaders: dict[int, list[Alike]] = {}
        for each in self._passes.evaluating():
            loaders.setdefault(id(each.first.loader), []).append(each)
        for evaluations in loaders.values():
            last = latest_of(evaluations)
            whole = any(each.first.exhausted or each.first.shortened for each in evaluations)
            if whole or not last.updates_before or not self._is_evaluation(last, trained):
                continue
            if last.planned and last.forwards == 1 < last.planned and leaves_after_one(last.where):
                self.says(self.judge_left(last.planned), last.where)

    def _is_evaluation(self, of: Pass, trained: Iterable[Any]) -> bool:
        """Whether it says how good the model is on rows of its own, which are the same ones each time."""
        in_order = has_torchs_own_sampler(of.loader) and isinstance(row_sampler(of.loader), SequentialSampler)
        return in_order and of in self._scored and not any(_is_part(of.dataset, each) for each in trained)

    @staticmethod
    def judge(
        rows: int | None,
        *,
        exhausted: bool = True,
        dropped: int = 0,
        batches: int = 0,
        forwards: int = 0,
        with_replacement: bool = False,
    ) -> Verdict:
        """A pass without training whose batches have all been used: whether it was gone through to its end, the rows
        that ``drop_last`` leaves out, the calls of a model, and whether rows are drawn with replacement."""
        expected = "each evaluation row once"
        if dropped:
            return Found(
                expected,
                observed=f"drop_last leaves out {dropped} of {rows} rows",
                hint="Remove drop_last from the evaluation's DataLoader.",
            )
        if exhausted and 2 <= forwards < batches:
            return Found(
                expected,
                observed=f"the model was called for {forwards} of {batches} batches",
                hint="Check the code between DataLoader and model: a prefetcher must also yield its last batch.",
            )
        if with_replacement:
            return Found(
                expected,
                observed="the rows are drawn with replacement",
                hint="Remove the sampler from the evaluation's DataLoader.",
            )
        return HELD if exhausted else NOTHING_TO_JUDGE

    @staticmethod
    def judge_left(planned: int) -> Verdict:
        """Batches of a loader of which each evaluation took the first alone, by its code."""
        return Found(
            expected=f"an evaluation of all {planned} batches",
            observed="the loop stops after the first batch",
            hint="Remove the break or return inside the loop.",
        )


def _is_part(dataset: Any, other: Any) -> bool:
    """Whether all its rows are the other's."""
    (one, within), (whole, rows) = base(dataset), base(other)
    return one == whole and (rows is None or (within is not None and within <= rows))
