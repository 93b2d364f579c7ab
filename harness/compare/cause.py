"""Cause: why two runs are not the same.

A cause is one class in one file, ``causes/<cause>.py``, with the id ``compare::<cause>``; ``harness explain compare``
lists them. Which one a difference has, :mod:`harness.compare.differences` says.
"""

from __future__ import annotations

from harness.catalogue import CAUSES, Fault


class Cause(Fault, package=CAUSES, family="compare"):
    """One class of what two runs can differ in."""
