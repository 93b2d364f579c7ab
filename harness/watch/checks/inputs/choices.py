from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from harness.watch.check import NOTHING_TO_JUDGE, Check, Found, Held, NothingToJudge, Verdict
from harness.watch.events import End, Forward

MIN_GROUPS = 16
"""Groups of choices that must have been seen. By reasoning: two questions of a batch may be about the same text."""

MIN_RATIO = 1.2
"""How many times as much the choices of one group have in common as those of two, where they are given with a question
or text that is long beside the answers; where they are mixed up, it is 1 on average."""


class ChoicesApart(Check):
    """The choices of a group have no more in common than those of different groups.

    ## Why is this a bug?
    A model for multiple choice is given groups of texts, the same question with another answer each, and is to tell
    which is right. If the texts are shuffled or batched one by one, a group holds answers to different questions, and
    its label points at one of them by chance. The shapes are right, and the loss stays near that of guessing.

    ## What to do
    Shuffle, split and batch whole groups, and flatten them in the collator.

    ## When it is right
    Ignore this warning if your choices share no question, context or word, and stand alone. Only models for multiple
    choice of transformers are looked at.

    ## References
    - https://huggingface.co/docs/transformers/tasks/multiple_choice
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "groups of tokenized choices"

    def begin(self) -> None:
        self._groups = 0
        self._within, self._between, self._squares = 0.0, 0.0, 0.0
        self._where: str | None = None

    def on_forward(self, event: Forward) -> None:
        ids = event.tensors.get("input_ids") if event.gradients and event.at.sampled else None
        if ids is None or ids.dim() != 3 or ids.is_floating_point() or ids.shape[0] < 2 or ids.shape[1] < 2:
            return
        if not any("MultipleChoice" in type(module).__name__ for module in event.model.modules()):
            return  # characters of words, or codes of sounds
        groups = [[set(choice) for choice in group] for group in ids.tolist()]
        everywhere = set.intersection(*(choice for group in groups for choice in group))  # separators and padding
        groups = [[choice - everywhere for choice in group] for group in groups]
        if not all(choice for group in groups for choice in group):
            return
        self._where = self._where or event.where
        self._groups += len(groups)
        for group, other in zip(groups, [*groups[1:], groups[0]], strict=True):
            within = _in_common(group, [*group[1:], group[0]])
            between = _in_common(group, [*other[1:], other[0]])
            self._within, self._between = self._within + within, self._between + between
            self._squares += (within - between) ** 2

    def on_end(self, event: End) -> None:
        if self._groups:
            within, between = self._within / self._groups, self._between / self._groups
            error = sqrt(max(0.0, self._squares / self._groups - (within - between) ** 2) / self._groups)
            self.says(self.judge(self._groups, within, between, error), self._where)

    @staticmethod
    def judge(groups: int, within: float, between: float, error: float) -> Verdict:
        """The share of tokens that choices ``within`` a group have in common, and that those of two groups have, with
        the standard error of the difference."""
        if groups < MIN_GROUPS:
            return NOTHING_TO_JUDGE
        in_common = f"in {groups} groups, choices have {within:.0%} in common, and those of two groups {between:.0%}"
        if within > between + 3 * error:
            return Held(in_common)
        if within > between + error or within >= MIN_RATIO * between > 0:
            return NothingToJudge(f"{in_common}, which may be by chance")
        return Found(
            expected="choices of one group that share their question or context",
            observed=f"in {groups} groups, the choices of a group have {within:.0%} of their tokens in common, and "
            f"those of two groups {between:.0%}",
        )


def _in_common(choices: Sequence[set[int]], others: Sequence[set[int]]) -> float:
    """The mean share of tokens that each has in common with the other in its place."""
    shares = [len(one & two) / min(len(one), len(two)) for one, two in zip(choices, others, strict=True)]
    return sum(shares) / len(shares)
