from __future__ import annotations

from harness.compare.cause import Cause


class DataOrder(Cause):
    """The two runs get the same rows in a different order.

    ## Why is this a bug?
    Runs on the same data with the same weights diverge in the first update and end as far apart as two seeds do. The
    reason can be a loader that draws its order from another generator, a sampler with its own seed, or a shuffled file.

    ## What to do
    Give the loaders of both runs a generator with the same seed, `DataLoader(…,
    generator=torch.Generator().manual_seed(…))`, or compare with `shuffle=False` in both.

    ## When it is right
    Two orders of the same rows are equally good. They explain a difference; they are not a fault in themselves.
    """

    severity = "warning"
