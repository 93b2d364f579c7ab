"""The old place of :mod:`harness.documented_run.recipe`: it goes with 0.6.0."""

from __future__ import annotations

import warnings

from harness.documented_run.recipe import *  # noqa: F403 - the same names

warnings.warn(
    "harness.recipe is harness.documented_run.recipe now; the old name goes with 0.6.0",
    DeprecationWarning,
    stacklevel=2,
)
