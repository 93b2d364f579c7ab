"""Rounds of two sides on a noisy machine, simulated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import signal

CV = 0.027
"""By how much rounds of one side differ on a hosted runner, relatively."""

MEMORY = 0.9
"""How much of one round's noise the next one still has: a load stays for some ten rounds."""


def rounds(
    random: np.random.Generator, runs: int, blocks: int, *, ratio: float = 1.0, cv: float = CV
) -> NDArray[np.float64]:
    """Seconds of shape (runs, blocks, 4): reference, ours, ours, reference.

    Half of the variance is a load that comes and goes, half is of each round alone. Both have heavy tails (Student's t
    with 4 degrees of freedom: of a million rounds some are twenty deviations off).
    """
    shape = (2, runs, 4 * blocks)
    own, load = random.standard_t(4, size=shape) * cv / 2  # of variance 2, and half of it for each
    load = signal.lfilter([np.sqrt(1 - MEMORY**2)], [1, -MEMORY], load, axis=-1)
    seconds = np.exp(own + load).reshape(runs, blocks, 4)
    seconds[:, :, 1:3] /= ratio
    return seconds
