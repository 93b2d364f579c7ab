from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.metrics.observations.batch_means import BatchMeans


class MeanOfMeans(Check):
    """An evaluation's loss or perplexity is the mean of batch means, though batches differ in their number of targets.

    ## Why is this a bug?
    The loss that a model gives for a batch is the mean over its targets. If texts have different lengths, so do the
    batches: in the mean of their means, one token of a short batch counts as much as several of a long one. The loss,
    and the perplexity computed from it, change with the batch size and the order, and cannot be compared with those of
    others.

    ## What to do
    Add up each batch's loss times its number of targets (labels that are not -100), and divide by the total number of
    targets; take the exponential of that for the perplexity.

    ## When it is right
    If each text, and not each token, should count the same, use `reduction="none"` and take the mean first over the
    tokens of a text, then over texts. Texts that are evaluated one by one are not reported. Neither are batches with
    about the same number of targets each and a smaller last one.

    ## References
    - https://github.com/huggingface/transformers/issues/39241
    - https://huggingface.co/docs/transformers/perplexity
    """

    new_since = "0.2.0"
    explains = ("metrics::mean-of-batches",)  # of the same evaluation, in what the script reports of it

    def judge(self, fact: BatchMeans) -> Verdict:
        if not fact.reported:
            return HELD
        return Found(
            expected=f"the mean over all {sum(fact.targets)} targets of the evaluation, {fact.weighted:.4g}",
            observed=f"the mean of {len(fact.means)} batch means, {fact.plain:.4g}, from batches with "
            f"{min(fact.targets)} to {max(fact.targets)} targets each",
        )
