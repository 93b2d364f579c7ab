"""What a loss function is given as its input."""

from __future__ import annotations

import torch

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.events import LossCall
from harness.watch.facts.loss_inputs import LossInput

FUNCTIONS = ("cross_entropy", "nll_loss", "kl_div")
"""Losses that sum over many classes, whose small terms half precision loses."""

MIN_CLASSES = 256
"""Classes from which on it matters. Bfloat16 tells 256 numbers between a power of two and the next. Half or double of
it changes verdicts (scripts/records/margins.json)."""

MIN_VALUES = 8
"""Numbers that a loss function must have been given in a row that are no raw logits: by reasoning, the logits of one or
two rows may add up to 1 by chance."""

HINTS = {
    "nll_loss": "Give it log_softmax(logits), or use cross_entropy.",
    "kl_div": "Give it log_softmax(logits) as its first argument, and probabilities as its second.",
}
"""What to do, for functions that expect logarithms."""


class HalfPrecision(Check):
    """The loss of a large vocabulary is computed in half precision.

    ## Why is this a bug?
    bfloat16 keeps eight bits. Over tens of thousands of classes the sum in the softmax loses its small terms, and the
    loss moves in steps of several percent: gradients of rare tokens are rounded away, and the loss curve looks like a
    staircase.

    ## What to do
    Convert the logits to float32 for the loss, as the models of transformers do:
    `cross_entropy(logits.float(), labels)`. Or run model and loss under `torch.autocast`, which does this itself.

    ## When it is right
    A kernel of your own that sums in float32. A loss within autocast, or over a few classes, is not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/amp.html#cuda-ops-that-autocast-to-float32
    """

    severity = "warning"
    new_since = "0.2.0"
    needs = "loss over a large vocabulary"
    in_windows = "first"

    def judge(self, call: LossCall) -> Verdict:
        if call.function not in FUNCTIONS or call.input.dim() < 2 or call.input.shape[1] < MIN_CLASSES:
            return NOTHING_TO_JUDGE
        half = call.input.dtype in (torch.float16, torch.bfloat16)
        if not half or torch.is_autocast_enabled(call.input.device.type):
            return HELD
        dtype = str(call.input.dtype).removeprefix("torch.")
        return Found(
            expected="float32 logits for a loss over many classes",
            observed=f"{call.function} over {call.input.shape[1]} classes is computed in {dtype}, without autocast",
        )


class NotRawLogits(Check):
    """The loss function is given something other than the raw logits or log-probabilities that it expects.

    ## Why is this a bug?
    `cross_entropy` applies the softmax itself, and `binary_cross_entropy_with_logits` the sigmoid. Given probabilities,
    they squash them once more: the loss cannot fall below a bound (0.31 with two classes), gradients are small, and the
    model never becomes sure of anything. `nll_loss` and `kl_div` expect logarithms and raise no error if they get
    something else.

    ## What to do
    Remove the softmax or sigmoid before the loss.

    Give the loss function what the last linear layer returns. Apply the softmax only where probabilities are shown.

    ## When it is right
    Log-probabilities given to `cross_entropy` are not reported: its softmax leaves them as they are. Neither are
    probabilities given to `binary_cross_entropy`, which expects them, inputs of `kl_div` whose target is not a
    distribution, or log-probabilities that are weighted (a focal loss) before `nll_loss` takes them.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.KLDivLoss.html
    """

    def judge(self, fact: LossInput) -> Verdict:
        if fact.instead is None or fact.numbers < MIN_VALUES:
            return HELD if fact.takes_logits else NOTHING_TO_JUDGE
        function = f"the script's own {fact.function}" if fact.by_hand else fact.function
        of_logarithms = fact.function in ("nll_loss", "kl_div")
        return Found(
            expected="log-probabilities" if of_logarithms else "raw logits",
            observed=f"{function} is given {fact.instead}",
            hint=HINTS.get(fact.function),
            details={"takes": "log-probabilities" if of_logarithms else "logits"},
        )
