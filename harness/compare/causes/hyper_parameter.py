from __future__ import annotations

from harness.compare.cause import Cause


class HyperParameter(Cause):
    """A setting of the training is another: learning rate, schedule, optimizer, batch size, window, clipping, dropout.

    ## Why is this a bug?
    A default that differs in another version, or in another library, is a setting that nobody chose. It changes each
    update a little, and shows in the metrics at the end, if at all.

    ## What to do
    Give the setting in both runs. The two values stand in the line below.

    ## When it is right
    When the setting is what the comparison is about.
    """

    formerly = ("hyper-parameter",)
