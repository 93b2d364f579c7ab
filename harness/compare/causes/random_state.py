from __future__ import annotations

from harness.compare.cause import Cause


class RandomState(Cause):
    """Dropout, noise or augmentation draws different random numbers.

    ## Why is this a bug?
    One more or one fewer draw before the training, in either run, shifts every later number. The cause may be an
    initialised head, a printed sample or a different order of calls. The same code then computes something else.

    ## What to do
    Seed again right before the training loop in both runs, or give the code that draws its own generator.

    ## When it is right
    Runs with two seeds should differ in this way.
    """

    severity = "warning"
