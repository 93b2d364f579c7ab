from __future__ import annotations

from harness.compare.cause import Cause


class Computation(Cause):
    """The same weights, rows and settings give different results.

    ## Why is this a bug?
    The two programs are not the same program: another loss or its scale, another layer, padding, labels, a model in
    eval mode, a library release that changed a formula.

    ## What to do
    Compare both programs at the module, loss or gradient that the line names. If only a library differs, `--bisect`
    finds the release.

    ## When it is right
    When the change is intended. The comparison then shows that everything before it is the same.
    """
