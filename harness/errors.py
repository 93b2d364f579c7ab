"""The one error that the harness raises on purpose."""

from __future__ import annotations

LONGEST = 1000
"""Characters of a message: what is quoted in it may be a whole file."""


class CannotTry(Exception):
    """It could not run: bad arguments, missing data or weights, a broken file.

    Its message is one sentence for the user: what was expected, what was found, where, and what to do. The command
    line prints it and exits with status 2; the pytest plugin fails with it, without a traceback. Of a long one the
    middle is left out: it begins with the place and ends with what to do.
    """

    def __str__(self) -> str:
        message = super().__str__()
        return message if len(message) <= LONGEST else f"{message[: LONGEST // 2]} [...] {message[-LONGEST // 2 :]}"
