from __future__ import annotations

from harness.compare.cause import Cause


class Computation(Cause):
    """Something else is computed from the same weights, rows and settings.

    ## Why is this a bug?
    The two programs are not the same program: another loss or its scale, another layer, padding, labels, a model in
    eval mode, a library release that changed a formula.

    ## What to do
    Look at the first module, loss or gradient that differs, which the line names, in both programs. Where the scripts
    are the same and a library is not, `--bisect` finds the release.

    ## When it is right
    When the change is intended. Then everything before it is shown to be the same.
    """

    formerly = ("another computation",)
