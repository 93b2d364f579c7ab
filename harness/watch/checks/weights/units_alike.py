from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.weights.observations.units import UnitsFollowed


class UnitsAlike(Check):
    """All units of a layer are the same: they started with equal weights, and every update changes them equally.

    ## Why is this a bug?
    Units with the same weights compute the same output and get the same gradient, so they stay the same forever: a
    layer of 32 of them can do no more than one. This comes from setting the weights of all layers to one number; random
    numbers are what makes units differ.

    ## What to do
    Initialise weights with random numbers, as torch's layers do by default (nn.init.kaiming_uniform_,
    nn.init.xavier_uniform_); use constants only for biases and normalisation.

    ## When it is right
    Layers that begin with equal weights and come apart, because the layers around them differ (a last layer that begins
    at 0), are not reported. Neither are layers without a gradient.

    ## References
    - https://www.deeplearningbook.org/contents/optimization.html (section 8.4, breaking the symmetry)
    """

    def judge(self, fact: UnitsFollowed) -> Verdict:
        if fact.layer is None:
            return HELD
        return Found(
            expected="units that differ from each other after some updates",
            observed=f"the {fact.units} units of layer {fact.layer} started with equal weights and are still equal",
        )
