"""The one error that the harness raises on purpose."""

from __future__ import annotations


class CannotTry(Exception):
    """It could not run: bad arguments, missing data or weights, a broken file.

    Its message is one sentence for the user: what was expected, what was found, where, and what to do. The command
    line prints it and exits with status 2; the pytest plugin fails with it, without a traceback.
    """
