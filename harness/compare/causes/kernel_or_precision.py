from __future__ import annotations

from harness.compare.cause import Cause


class KernelOrPrecision(Cause):
    """The same computation is done differently: another kernel, data type or order of sums.

    ## Why is this a bug?
    Usually it is not one: only rounding is at work, and it grows over the updates as it does between two machines. In
    half precision it can matter: a loss in bfloat16, a missing master copy, attention without a mask that a kernel
    ignores.

    ## What to do
    Compare with `torch.use_deterministic_algorithms(True)`, the same attention implementation and the same dtype. Any
    difference
    beyond
    rounding
    is
    `compare::computation`.

    ## When it is right
    When the difference is no larger than rounding can make it; the line shows both numbers.
    """

    severity = "warning"
