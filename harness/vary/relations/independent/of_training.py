from __future__ import annotations

from harness.vary.differences import Numbers, Run, are_equal, steady
from harness.vary.relation import HELD, Outcome, Relation, Tried, Way, broken
from harness.watch.facts.formulas import RATES
from harness.watch.facts.reported_numbers import HELD_OUT


class OfTraining(Relation):
    """With a learning rate of 0, the model scores exactly as after training.

    ## Why is this a bug?
    With a learning rate of 0, every update leaves the weights unchanged. If the evaluated model still gives the same
    outputs, bit for bit, it is not the model that is trained. Another model is scored: one that was loaded, or an
    earlier copy.

    ## What to do
    Evaluate the model that the optimizer holds, and load nothing into it in between.

    ## When it is right
    When the evaluated model is meant to be another one, such as a teacher or a baseline.
    """

    new_since = "0.4.0"
    kind = "rate 0"
    tries = "train with a learning rate of 0"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        if not _outputs(tried.first):
            return "no model is called without gradients after the first update"
        return cls.of_loaders(()) if _scores(tried) else "the script reports no score"

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        scores, outputs = _scores(tried), [_outputs(each) for each in (tried.first, other)]
        if outputs[0] != outputs[1] or not are_equal(scores, other):
            return HELD
        series = max(scores.values(), key=lambda each: each.reported[-1].at)
        return broken(
            "a different result for a model that was never changed",
            f"the same {series.name}, {series.reported[-1].value:g}, and the same outputs in all {len(outputs[0])} "
            "evaluated calls",
            series.where,
        )


def _scores(tried: Tried) -> Numbers:
    """The numbers of an evaluation, by their names."""
    same, _ = steady(tried.first, tried.again)
    return {
        key: each
        for key, each in same.items()
        if "train" not in each.name and (HELD_OUT.search(each.name) or each.reported[-1].kind in RATES)
    }


def _outputs(run: Run) -> list[str]:
    """What models said without gradients after the first update, as digests."""
    later = [each for update in run.journal.updates[1:] for each in update.evaluations]
    return [*later, *(run.journal.end.evaluations if run.journal.end is not None else ())]
