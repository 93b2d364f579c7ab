from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, NothingToJudge, Verdict
from harness.watch.facts.parameters import MAX_SHARE_WITHOUT_GRADIENT, TensorsHeld, ZeroGradients

MIN_ZERO_MATRICES = 2
"""Matrices whose gradients are all 0 from which on that is no accident."""

NEW_LEAF = (
    "Call backward() on the loss that was computed, and combine losses with +, torch.stack or torch.cat: "
    "torch.tensor(..., requires_grad=True), detach().requires_grad_() and a model called under no_grad() make a new "
    "tensor without a graph."
)


class CutOff(Check):
    """The gradient of the loss does not reach parameters that the optimizer should train.

    ## Why is this a bug?
    `detach()`, `.data`, `no_grad()` and operations without a derivative cut the graph. The part before them is computed
    in every forward pass and never learns; the part after them does, so the loss still falls.

    ## What to do
    Look for no_grad(), detach(), .data, .item() or argmax between these parameters and the loss; freeze what you don't
    want to train with requires_grad_(False).

    ## When it is right
    Frozen parameters, and small parts of a model that its loss does not use (a pooler, a second head), are not
    reported. They are reported if they belong to several of the script's own blocks, none of which uses them. Larger
    modules that are never called are a warning: a configuration may leave them out. Gradients of 0 from a loss term
    with a weight of 0 are not reported. Neither is a layer that was copied to make an `nn.TransformerEncoder` and is
    kept next to it.

    ## References
    - https://github.com/huggingface/transformers/issues/21381
    """

    def judge(self, fact: TensorsHeld) -> Verdict:
        without, most = fact.without_gradient, MAX_SHARE_WITHOUT_GRADIENT
        is_large = without > most * fact.tensors or fact.share_of_elements > most
        if is_large and not fact.of_another_model:  # which is another check's
            end = fact.ends_in
            return Found(
                expected="a gradient for every trainable parameter",
                observed=f"{without} of {fact.tensors} trainable tensors in the optimizer never get a gradient"
                f"{', though their model is called' if fact.called else ''}: {fact.shown}"
                + ("" if end is None else f"; the loss's graph ends in a new tensor of shape {end}"),
                where=None if end is None else fact.ends_at,
                update=1,
                hint=None if end is None else NEW_LEAF,
            )
        if fact.in_each is not None:
            return Found(
                expected="a gradient for every trainable parameter",
                observed=f"{fact.in_each} never gets a gradient in any of {fact.blocks} blocks, whose other members do",
                update=1,
                hint=f"Call {fact.in_each.split()[0]} in the block's forward, or remove it from the block.",
            )
        if fact.left_out > most * fact.tensors or fact.share_left_out > most:
            return Found(
                expected="a gradient for every trainable parameter",
                observed=f"{fact.left_out} of {fact.tensors} trainable tensors in the optimizer never get a gradient, "
                f"because the modules that they are in are never called: {fact.shown_left_out}",
                update=1,
                hint="Call these modules in the model's forward, or remove them from the model.",
                may_be_meant=True,
            )
        if fact.any_cut_off:
            return NothingToJudge("too few parameters without gradients to tell them from unused ones")
        return HELD if fact.tensors else NOTHING_TO_JUDGE

    def judge_zeros(self, fact: ZeroGradients) -> Verdict:
        if fact.matrices < MIN_ZERO_MATRICES:
            return NOTHING_TO_JUDGE
        return Found(
            expected="gradients other than 0",
            observed=f"the gradients of {fact.matrices} matrices in the optimizer are exactly 0 in all updates looked "
            f"at: {fact.shown}",
            update=1,
            hint="Look for an output that the loss never uses (hidden[-1] is only one of two directions), for "
            "activations that are 0 for every row (dead ReLUs), for two factors that both start at 0, and for "
            "rounding, sign or argmax between these parameters and the loss.",
        )
