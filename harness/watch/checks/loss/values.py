from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.loss.observations.loss_values import (
    MIN_EQUAL_LOSSES,
    LossOverBatches,
    NotFiniteLossUnused,
    NotFiniteLossUsed,
    ProbabilityRatio,
)
from harness.watch.events import LossCall, TrainerMade
from harness.watch.facts.losses import LossDifferentiated

MAX_LABEL_SMOOTHING = 0.9
"""Label smoothing from which on the labels hardly count. Papers use 0.1, and 1.0 leaves nothing of them."""

MIN_UPDATES = 4
"""Updates on rows that were trained on before, in all of which the ratio is 1."""


class Constant(Check):
    """The loss does not depend on the predictions or on the labels, so nothing can be learned from it.

    ## Why is this a bug?
    A loss that does not depend on the logits or the labels has gradients of zero, or gradients that say nothing about
    the task. The usual cases: a cross-entropy over a single class, which is always 0, and label smoothing of 1, which
    gives all classes the same target.

    ## What to do
    Check the loss function, its options and the number of labels.

    A head for `cross_entropy` needs one logit for each class: `num_labels=2` for two classes. With one logit, use
    `binary_cross_entropy_with_logits`.

    ## When it is right
    Label smoothing below 0.9 is not reported. Neither is a loss that stays the same before the first update, or because
    a loader has a single batch. Neither is a loss with a margin that is 0, such as a triplet loss.

    ## References
    - https://github.com/huggingface/transformers/issues/45479
    """

    in_windows = "first"
    explains = ("gradients::cut-off",)

    def judge(self, fact: LossOverBatches) -> Verdict:
        if fact.varied or fact.of_one_class or fact.label_smoothing >= MAX_LABEL_SMOOTHING:
            return HELD  # or it has been said why it must be constant
        return self._depends_on_nothing(f"the loss was exactly {fact.value:.6g} for {MIN_EQUAL_LOSSES} batches")

    def judge_call(self, call: LossCall) -> Verdict:
        if call.function != "cross_entropy" or not call.at.sampled:
            return NOTHING_TO_JUDGE
        smoothing = call.options.get("label_smoothing", 0.0)
        if smoothing >= MAX_LABEL_SMOOTHING:
            return self._depends_on_nothing(f"label_smoothing={smoothing} gives all classes the same target")
        if call.input.dim() == 2 and call.input.shape[1] == 1:
            return self._depends_on_nothing("the cross-entropy has only one class, so it is always 0", case="one-class")
        return NOTHING_TO_JUDGE

    def judge_trainer(self, event: TrainerMade) -> Verdict:
        smoothing = event.trainer.args.label_smoothing_factor
        if smoothing < MAX_LABEL_SMOOTHING:
            return NOTHING_TO_JUDGE
        return self._depends_on_nothing(f"label_smoothing_factor={smoothing} gives all classes the same target")

    def _depends_on_nothing(self, observed: str, **details: str) -> Found:
        return Found("a loss that depends on the logits and the labels", observed, details=details)


class NotFinite(Check):
    """`backward()` is called on a loss that is NaN or infinite.

    ## Why is this a bug?
    Its gradients are NaN too, and one optimizer step writes NaN into every parameter that they reach. From then on the
    model predicts nothing, while the loop continues without an error.

    ## What to do
    Check the labels (are all ignored?), the learning rate, divisions by 0 and logarithms of 0;
    torch.autograd.set_detect_anomaly(True) shows which operation produces the NaN.

    ## When it is right
    A loss that a GradScaler has scaled is not reported: the scaler skips such an update and lowers its factor. Neither
    is one whose gradients are cleared before any update uses them, as long as there are other updates.

    ## References
    - https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection
    """

    explains = ("model::nondeterministic-eval", "loss::not-raw-logits", "gradients::cut-off")

    def judge(self, fact: LossDifferentiated) -> Verdict:
        return HELD

    def judge_update(self, fact: NotFiniteLossUsed) -> Verdict:
        return Found(expected="a finite loss", observed=f"the loss is {fact.value}")

    def judge_end(self, fact: NotFiniteLossUnused) -> Verdict:
        """A script that leaves out each step for it trains nothing, and the loss is why."""
        and_so = "" if fact.updated_by_hand else ", and no update is made"
        return Found(expected="a finite loss", observed=f"the loss is {fact.value}{and_so}")


class RatioAlwaysOne(Check):
    """The ratio of new to old probabilities is 1 in every update, because both come from the current policy.

    ## Why is this a bug?
    PPO goes over the same rows several times, and clips the ratio of the policy's probabilities now to those from when
    the rows were collected. If the script recomputes the old log-probabilities in each update, from the current policy
    or from a fresh copy of it, the ratio is 1 and clipping never acts: nothing holds the policy back.

    ## What to do
    Store the old log-probabilities when the rows are collected, and use them in all updates on these rows.

    ## When it is right
    Algorithms that make one update per rollout have this ratio by design (`exp(logp - logp.detach())`) and are not
    reported: only rows that were trained on before count. The first update on rows may have this ratio.

    ## References
    - https://arxiv.org/abs/1707.06347
    """

    new_since = "0.3.0"

    def judge(self, fact: ProbabilityRatio) -> Verdict:
        if fact.ones != MIN_UPDATES:
            return HELD
        return Found(
            expected="a ratio that moves away from 1 after the first update on the same rows",
            observed=f"the ratio is exactly 1 for all {fact.rows} rows in {MIN_UPDATES} repeated updates on the same "
            "rows: the old probabilities come from the current policy, so nothing is ever clipped",
        )
