from __future__ import annotations

from harness.compare.cause import Cause


class HyperParameter(Cause):
    """A training setting differs: learning rate, schedule, optimizer, batch size, accumulation, clipping or dropout.

    ## Why is this a bug?
    A default that differs in another version, or in another library, is a setting that nobody chose. It changes each
    update a little, and you may only notice it in the final metrics, if at all.

    ## What to do
    Use the same setting in both runs. The line below shows the two values.

    ## When it is right
    When the setting is what the comparison is about.
    """
