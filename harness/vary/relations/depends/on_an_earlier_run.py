from __future__ import annotations

from pathlib import Path

from harness.vary.differences import Run, parting
from harness.vary.relation import HELD, Outcome, Relation, Tried, Way, broken, lacks, said_of


class OnAnEarlierRun(Relation):
    """A second run in the folder that the first one left trains differently.

    ## Why is this a bug?
    Files that the first run left decide what the second one does: a cache of rows prepared with other settings, a split
    that is read instead of made, a file that is appended to. Nobody can tell from the settings how the result came
    about.

    ## What to do
    Name a cache after what it was made from, or rebuild it. Write the results of each run to a separate folder.

    ## When it is right
    A script that continues from its own checkpoint is not reported; the output names the checkpoint. `harness resume`
    tests whether it continues correctly.
    """

    new_since = "0.4.0"
    tries = "start it again in the folder that the first run left"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        return Way(after_another=True)

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        if (itself := tried.differs_from_itself()) is not None:
            return lacks(itself)
        apart = parting(tried.first, other)
        if apart is None:
            return HELD
        written = {Path(each.path).parts[0] for each in tried.first.journal.saves if each.path and each.weights}
        before = {(each.path, each.where) for each in tried.first.journal.loads}
        went_on = next(
            (
                each
                for each in other.journal.loads
                if each.path and (each.path, each.where) not in before and Path(each.path).parts[0] in written
            ),
            None,
        )
        if went_on is not None:
            return lacks(f"it continues from {went_on.path} ({went_on.where}); harness resume tests that")
        return broken(
            "the same training in a folder that an earlier run left",
            f"{said_of(apart.part)} in update {apart.update} ({apart.what})",
            apart.where,
            apart.update,
        )
