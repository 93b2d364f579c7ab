from __future__ import annotations

from harness.compare.cause import Cause


class Initialisation(Cause):
    """The two runs start with different weights.

    ## Why is this a bug?
    Everything that follows differs too, so nothing can be said about the rest. New heads, adapters and whole models
    draw their first weights from torch's generator: another seed, a seed that is set after the model is made, or one
    more layer before them gives different weights.

    ## What to do
    Set the seed before you create the model, or load the same weights in both. `harness compare` names the tensors.

    ## When it is right
    Runs with two seeds should differ in this way. Compare their metrics with `harness baseline`, not their bits.
    """
