from __future__ import annotations

from harness.compare.cause import Cause


class Initialisation(Cause):
    """The two runs begin with other weights.

    ## Why is this a bug?
    Whatever follows differs too, so that nothing can be said of the rest. Heads that are made anew, adapters and whole
    models draw their first weights from torch's generator: another seed, a seed that is set after the model is made, or
    one more layer before them gives others.

    ## What to do
    Set the seed before the model is made, or load both from the same weights. `harness compare` names the tensors.

    ## When it is right
    Runs of two seeds are to differ so. Compare their metrics with `harness baseline`, not their bits.
    """

    id = "compare::initialisation"
    formerly = ("initialisation",)
