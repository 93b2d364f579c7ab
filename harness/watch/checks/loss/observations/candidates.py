"""Candidates: whether the right one of a loss is among the wrong ones as well."""

from __future__ import annotations

import torch

from harness.watch.bounded import MOST
from harness.watch.events import Backward, Fact
from harness.watch.facts.tensor_updates import ROUNDINGS
from harness.watch.host import together
from harness.watch.recogniser import Recogniser

MOST_CANDIDATES = 8 * MOST
"""Candidates of a row that are compared: of many thousands some have nearly the same score by chance."""


class CandidatesScored(Fact):
    """A backward pass has ended of a loss that picks one of several candidates. ``where`` the loss is computed."""

    needs = "loss that picks one of several candidates in full precision"
    rows: int
    """Rows that were looked at so far."""
    twice: int
    """Rows in which another candidate had the score of the right one."""
    batches: int


def _on_a_grid(scores: torch.Tensor) -> bool:
    """Whether the scores are whole multiples of one step, as those of a quantised model are."""
    values: torch.Tensor = torch.unique(scores)
    if len(values) < 3:
        return True
    steps = (values - values[0]).double() / values.diff().amin()
    if steps[-1] > 2**16:  # more than 16 bits: that is the grid of float32 itself, on which all scores are
        return False
    return torch.allclose(steps, steps.round(), rtol=0, atol=0.01)  # of scores on no grid, one in fifty is so near


class Candidates(Recogniser):
    makes = (CandidatesScored,)

    def begin(self) -> None:
        self._rows = self._twice = self._batches = 0

    def on_backward(self, event: Backward) -> None:
        if not event.at.sampled or event.inside_step:
            return
        for call in event.losses:
            if call.ignored is None or call.input.dim() != 2 or not 2 < call.input.shape[1] <= MOST_CANDIDATES:
                continue
            scores, right = together(call.input.float(), call.target)
            known = (right >= 0) & (right < scores.shape[1])
            scores, right = scores[known], right[known]
            if not len(scores) or torch.equal(scores, scores.bfloat16().float()) or _on_a_grid(scores):
                continue  # of half precision, and of quantised ones, many are alike by rounding
            apart = (scores - scores.gather(1, right[:, None])).abs()
            rounding = ROUNDINGS * torch.finfo(scores.dtype).eps * scores.abs().amax(1, keepdim=True)
            alike = (apart <= rounding).sum(1) - 1
            alike[scores.gather(1, right[:, None])[:, 0] == scores.amin()] = 0  # where scores are cut off below
            self._batches += 1
            self._rows += len(scores)
            # Where most are alike, the model says the same of all, as one whose last layer begins at 0 does.
            self._twice += int(((alike > 0) & (alike < scores.shape[1] / 2)).sum())
            told = CandidatesScored(rows=self._rows, twice=self._twice, batches=self._batches, where=call.where)
            self.tell(told)
