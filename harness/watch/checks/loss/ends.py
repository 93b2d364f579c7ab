from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from harness.watch.bounded import MOST, Latest
from harness.watch.check import NOTHING_TO_JUDGE, Check, Found, Held, Verdict
from harness.watch.events import End, Forward, LossCall
from harness.watch.facts.loss_inputs import REGRESSIONS
from harness.watch.host import on_host

ENDS = ("done", "terminal", "terminated", "finished", "game_over", "dead")
"""Parts of the names that scripts give to what says whether an episode went on; ``d`` alone is one, too."""

FRAMES = 2
"""Functions of the script, from that of the loss on, whose variables are read."""

MIN_TRANSITIONS = 16
"""Rows of a batch from which on one number that explains them all is no chance."""

MIN_ENDED = 8
"""Rows at the end of an episode that must have been seen. By reasoning: one or two may have a reward by chance that
explains them."""

MIN_DISCOUNT = 0.5
"""Smallest discount that is taken for one. By reasoning: scripts use 0.9 to 1."""

MIN_PAST = 0.9
"""Smallest share of them whose target has more than the reward. By reasoning: where time limits end some episodes, the
others have the reward alone."""

MOST_VALUES = 1_000_000
"""Numbers of a forward pass that are kept for the next loss: no text's logits."""


class TargetPastTheEnd(Check):
    """The target of a transition that ended its episode includes the value of the next state.

    ## Why is this a bug?
    No reward follows the end of an episode, so the target of its last transition is the reward alone. If the script
    adds the discounted value of the next state, the value of ending is whatever the network says of a state that does
    not exist. Values grow from update to update, and the agent does not learn to avoid failure or to reach the goal.

    ## What to do
    Mask the next value: `target = reward + gamma * next_value * (1 - done)`.

    ## When it is right
    Ignore this warning if your episodes end only at a time limit, behind which the environment would go on. What ends
    is read from variables near the loss whose name says so (done, terminated, and so on) and that are 0 or 1.

    ## References
    - https://arxiv.org/abs/1312.5602 (algorithm 1: the target of a terminal state)
    - https://arxiv.org/abs/1712.00378 (time limits)
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "temporal difference target beside what ends an episode"

    def begin(self) -> None:
        self._values = Latest[torch.Tensor](most=4)
        """What models said without a gradient since the latest loss."""
        self._ended = self._past = 0
        self._where: str | None = None

    def on_forward(self, event: Forward) -> None:
        logits = event.logits
        if not event.gradients and logits is not None and 1 <= logits.dim() <= 2 and logits.numel() <= MOST_VALUES:
            self._values.append(logits.detach())  # (rows,) or (rows, actions)

    def on_loss_call(self, event: LossCall) -> None:
        values, target = [*self._values], event.target
        self._values.clear()
        if not event.at.sampled or event.function not in REGRESSIONS or target.requires_grad or not values:
            return
        rows = target.numel()
        values = [each.reshape(rows, -1) for each in values if len(each) == rows]
        if rows < MIN_TRANSITIONS or not values:
            return
        seen = self._at_ends(on_host(target).reshape(-1).double(), [on_host(each).double() for each in values])
        if seen is not None:
            self._where = self._where or event.where
            self._ended += seen[0]
            self._past += seen[1]

    def _at_ends(self, target: torch.Tensor, values: list[torch.Tensor]) -> tuple[int, int] | None:
        """The rows that ended an episode, and those of them whose target has more than the reward."""
        columns = dict(self._columns(len(target)))
        found = None
        named = [each for name, each in columns.items() if name == "d" or any(part in name.lower() for part in ENDS)]
        if any(len(set(each.tolist())) == 1 for each in named):
            return None  # nothing ends here for good, whatever another variable says
        for ends in named:
            if set(ends.tolist()) != {0.0, 1.0}:
                continue
            for goes_on in (ends == 0, ends == 1):
                for reward in columns.values():
                    rest = target - reward
                    if reward is ends or not any(_explains(rest[goes_on], each[goes_on]) for each in values):
                        continue
                    past = int((rest[~goes_on].abs() > 1e-4 * (1 + target[~goes_on].abs())).sum())
                    ended = int((~goes_on).sum())
                    if not past:
                        return ended, 0
                    found = ended, past
        return found

    def _columns(self, rows: int) -> Iterator[tuple[str, torch.Tensor]]:
        """Variables near the loss that have a number for each row."""
        for variables in self.monitor.locator.variables(FRAMES):
            for name, value in variables.items():
                for key, each in ((name, value), *_fields(value)):
                    if _is_column(each, rows):
                        yield str(key), on_host(torch.as_tensor(each)).detach().reshape(-1).double()

    def on_end(self, event: End) -> None:
        if self._where is not None:
            self.says(self.judge(self._ended, self._past), self._where)

    @staticmethod
    def judge(ended: int, past: int) -> Verdict:
        """Transitions that ended an episode, and those of them whose target has more than the reward."""
        if ended < MIN_ENDED:
            return NOTHING_TO_JUDGE
        if past < MIN_PAST * ended:
            return Held(f"{ended} transitions ended an episode, {past} of them with a target of more than the reward")
        return Found(
            expected="the reward alone as the target of a transition that ended its episode",
            observed=f"the targets of {past} of {ended} such transitions include the next state's value",
        )


def _fields(value: Any) -> Iterable[tuple[Any, Any]]:
    """What a dict, a named tuple or an object holds by name; nothing of it is computed."""
    if isinstance(value, dict):
        return list(value.items()) if len(value) <= MOST else ()  # else it is a vocabulary, or a module
    if isinstance(value, tuple):
        return zip(getattr(type(value), "_fields", ()), value, strict=False)
    return () if torch.is_tensor(value) else list(getattr(value, "__dict__", {}).items())


def _is_column(value: Any, rows: int) -> bool:
    """Whether it is a tensor or an array with a number for each row."""
    if torch.is_tensor(value):
        return value.numel() == rows and not value.requires_grad and not value.is_complex()
    return type(value).__module__ == "numpy" and getattr(value, "size", 0) == rows and value.dtype.kind in "fiub"


def _explains(rest: torch.Tensor, values: torch.Tensor) -> bool:
    """Whether one discount makes the rest of each target of one of the next state's values."""
    if len(rest) < MIN_TRANSITIONS // 2 or not rest.abs().max() > 0:
        return False
    row = int(rest.abs().argmax())
    for discount in (rest[row] / values[row]).tolist():
        if MIN_DISCOUNT <= discount <= 1 + 1e-6:
            apart = (rest[:, None] - discount * values).abs().amin(1)
            if bool((apart <= 1e-4 * (1 + rest.abs())).all()):
                return True
    return False
