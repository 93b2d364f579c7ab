from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.facts.units import UnitsFollowed


class UnitsAlike(Check):
    """All units of a layer are alike: they began with the same weights, and every update changes them in the same way.

    ## Why is this a bug?
    Units with the same weights compute the same output and get the same gradient, so they stay the same forever: a
    layer of 32 of them can do no more than one. This comes from setting the weights of all layers to one number; random
    numbers are what makes units differ.

    ## What to do
    Initialise weights with random numbers, as torch's layers do by themselves (nn.init.kaiming_uniform_,
    nn.init.xavier_uniform_); constants are for biases and normalisation.

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
            expected="units that differ from one another after some updates",
            observed=f"the {fact.units} units of {fact.layer} began alike and still are",
        )
