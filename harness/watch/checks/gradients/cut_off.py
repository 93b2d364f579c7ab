from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Combined, End
from harness.watch.facts.parameters import LOOKS, MAX_SHARE_WITHOUT_GRADIENT, OptimizerTensors, Parameters
from harness.watch.monitor import Monitor

MIN_ZERO_MATRICES = 2
"""Matrices whose gradients are all 0 from which on that is no accident. Neither half nor double of it changes a verdict
of the corpus."""

NEW_LEAF = (
    "torch.tensor(..., requires_grad=True), detach().requires_grad_() and a model called under no_grad() make a new "
    "leaf, whose graph begins with itself. Call backward() on the loss that was computed; put computed losses together "
    "with +, torch.stack or torch.cat."
)


class CutOff(Check):
    """The loss's gradient does not reach parameters that the optimizer is to train.

    ## Why is this a bug?
    `detach()`, `.data`, `no_grad()` and operations without a derivative cut the graph. The part before them is computed
    in every forward pass and never learns; the part after them does, so the loss still falls.

    ## What to do
    Look for no_grad(), detach(), .data, .item() or argmax between these parameters and the loss; freeze what is not to
    be trained with requires_grad_(False).

    ## When it is right
    Frozen parameters, and small parts of a model that its loss does not use (a pooler, a second head), are not
    reported. Neither are gradients of 0 that come from a term of the loss with a weight of 0, or a layer that is kept
    beside the `nn.TransformerEncoder` that was made of copies of it.

    ## References
    - https://github.com/huggingface/transformers/issues/21381
    """

    needs = "optimizer step"
    in_windows = "first"
    formerly = ("gradients::reach-the-parameters",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)
        self.weighed = False
        """Whether a term of a loss was given a weight of 0: then it is to have no gradient."""

    def on_combined(self, event: Combined) -> None:
        self.weighed |= event.sign == "*" and any(type(part) in (int, float) and part == 0 for part in event.parts)

    def on_end(self, event: End) -> None:
        judged = [held for held in self.parameters.optimizers if held.stepped and held.all]
        self.looked = bool(judged) and not any(held.cut_off for held in judged)
        for held in judged:
            self._without_gradient(held)
            self._with_gradients_of_zero(held)

    def lacks(self) -> str:
        silent = any(held.stepped and held.cut_off for held in self.parameters.optimizers)
        return "too small a part without gradients to be told from one that is not used" if silent else super().lacks()

    def _without_gradient(self, held: OptimizerTensors) -> None:
        cut = held.cut_off if held.reached or self.parameters.ends_in is None else held.without_gradient
        without = len(cut)
        if self.parameters.holds_another_model(held):
            return  # it is another check's
        if without > MAX_SHARE_WITHOUT_GRADIENT * len(held.all) or held.share_of_elements > MAX_SHARE_WITHOUT_GRADIENT:
            end = self.parameters.ends_in if without == len(held.all) else None
            called = ", though their model is called" if cut == held.cut_off else ""
            self.found(
                expected="a gradient for every parameter that is to be trained",
                observed=f"{without} of {len(held.all)} trainable tensors in the optimizer never get one{called}: "
                f"{self.parameters.shown(cut)}"
                + ("" if end is None else f"; the loss's graph ends in a new tensor of shape {end}"),
                where=self._where(held) if end is None else self.parameters.ends_at,
                update=1,
                hint=None if end is None else NEW_LEAF,
            )

    def _with_gradients_of_zero(self, held: OptimizerTensors) -> None:
        dead = (held.matrices & held.reached) - held.nonzero
        if held.looks >= LOOKS and not self.weighed and len(dead) >= MIN_ZERO_MATRICES and not held.foreign:
            self.found(
                expected="gradients other than 0",
                observed=f"those of {len(dead)} matrices in the optimizer are exactly 0 in all updates looked at: "
                f"{self.parameters.shown(dead)}",
                where=self._where(held),
                update=1,
                hint="Look for an output that is left out (of two directions hidden[-1] is one), for two factors that "
                "both start at 0, and for rounding, sign or argmax between these parameters and the loss.",
            )

    def _where(self, held: OptimizerTensors) -> str | None:
        models = self.parameters.models
        return models[0].where if models else held.made
