from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.evidence import evidence_of_rows
from harness.resume.loss import Evidence, Loss


class DataOrderLost(Loss):
    """After a resume, the rows come in a different order than without the kill.

    ## Why is this a bug?
    Within an epoch, another permutation means that some rows are trained on twice and others not at all. At the
    beginning of an epoch, an order that was used before comes again, epoch after epoch if jobs are short.

    ## What to do
    Derive an epoch's order from its number (a generator seeded with seed + epoch, set_epoch), or save the state of the
    sampler's generator at the start of the epoch; then skip the batches that are done.

    ## When it is right
    At the start of an epoch, if any order is as good and the run need not be reproducible.

    ## References
    - https://github.com/huggingface/transformers/pull/40691
    - https://github.com/huggingface/accelerate/pull/4071
    """

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        return evidence_of_rows(attempt, "order")
