"""Evaluations by hand: rows of no loader that no update is made for, and that are scored again and again."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.watch.bounded import FirstByKey
from harness.watch.events import Backward, End, Fact
from harness.watch.recogniser import Recogniser
from harness.watch.run.evaluations import MOST_ROWS, Evaluation, FirstCall
from harness.watch.run.rows import TrainedRows

MIN_ROUNDS = 2
"""Times that the same rows must have been scored, with updates in between: by reasoning, once may be a look."""

MIN_CALLS = 2
"""Calls that score rows in a script that trains nothing: by reasoning, one may be a look."""

MIN_ROUNDS_OF_NEW_ROWS = 3
"""The same for a line that scores other rows each time, as a generator gives them."""

ON_PURPOSE = 3
"""Calls with the same rows without an update in between that are a sample of predictions (Monte Carlo dropout)."""


class EvaluatedByHand(Fact):
    """A run is over in which rows of no loader, which no update is made for, were scored again and again.

    ``where`` the model was called.
    """

    of_run = True
    first: FirstCall
    often: bool = True
    """Whether that was between updates, too, and not only after the last one."""


@dataclass(eq=False)
class ScoringLine:
    """A line that calls a model, and the evaluations that it made."""

    model: int
    first: FirstCall
    rounds: list[int] = field(default_factory=list)
    """Numbers of updates that had been made, the first few and the latest."""
    calls: int = 0
    rows: set[int] = field(default_factory=set)
    again: bool = False
    """Whether rows of an earlier round were scored in another one."""
    left_out: bool = False
    """Whether it samples predictions, or chooses among rows."""

    @property
    def often(self) -> bool:
        return len(self.rounds) >= (MIN_ROUNDS if self.again else MIN_ROUNDS_OF_NEW_ROWS)

    def add(self, evaluation: Evaluation) -> None:
        self.rounds = [*dict.fromkeys([*self.rounds[: MIN_ROUNDS_OF_NEW_ROWS - 1], evaluation.update])]
        self.calls += evaluation.calls
        self.again |= not self.rows.isdisjoint(evaluation.rows)
        if len(self.rows) < MOST_ROWS:
            self.rows |= evaluation.rows
        self.left_out |= evaluation.by_row or evaluation.asked_before or evaluation.sampled >= ON_PURPOSE


class EvaluationsByHand(Recogniser):
    """Evaluations of rows that no update is made for.

    What a script scores once may be a choice of rows, a reward or a teacher's guess. Rows that are scored after other
    updates too, or after the last one, and that nothing is trained on, are an evaluation; so are those of a line that
    scores other rows again and again. Whether a graph was recorded makes no difference, if nobody differentiates it.
    """

    makes = (EvaluatedByHand,)

    def begin(self) -> None:
        self._trained = self.fact(TrainedRows)
        self._differentiates = False
        """Whether there was a backward pass: a script without one may do nothing but evaluate."""
        self._lines = FirstByKey[tuple[int, str | None, bool], ScoringLine](16)
        """Lines by the model's number, the place, and whether a graph was made."""

    def on_backward(self, event: Backward) -> None:
        self._differentiates = True

    def on_evaluation(self, fact: Evaluation) -> None:
        key = fact.model, fact.where, fact.first.gradients
        if not fact.rows.isdisjoint(self._trained.of.get(fact.model, ())):
            return  # of rows that are trained on, beside which the same line may score others
        if fact.rows and (fact.scored or fact.by_row) and self._lines.takes(key):
            self._lines.setdefault(key, ScoringLine(fact.model, fact.first)).add(fact)

    def on_end(self, event: End) -> None:
        for line in filter(self._is_evaluation, self._lines.values()):
            self.tell(EvaluatedByHand(first=line.first, often=line.often, where=line.first.where))

    def _is_evaluation(self, line: ScoringLine) -> bool:
        if line.left_out or len(line.rows) < 2:
            return False
        if not self._differentiates:
            return line.calls >= MIN_CALLS
        trained = self._trained.of.get(line.model)
        last = self.monitor.updates_made in line.rounds
        return (line.often or last) and bool(trained) and trained is not None and trained.isdisjoint(line.rows)
