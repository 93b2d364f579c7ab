from __future__ import annotations

from harness.findings import few
from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.settings.observations.options import OptionsRead

MOST_SHOWN = 20
"""Options that are named."""


class NeverRead(Check):
    """The command line takes an option that the script never reads.

    ## Why is this a bug?
    Whoever gives the option believes that it does something: runs with ten values of it are the same run ten times.

    ## What to do
    Pass the value on to what it was meant for, or remove the option.

    ## When it is right
    An option that the script reads only in another mode, or with another model, is not reported: a line of yours reads
    it, in a file below the working directory. Neither are those of
    a parser whose values are handed on whole (`vars(args)`, `copy`), unless that line prints, logs or saves them. Nor
    are options that a library adds to your parser, and `--local_rank`, which torch's former launcher gives to every
    script.

    `harness vary --settings` finds options that are read and still change nothing.
    """

    new_since = "0.5.0"
    severity = "warning"

    def judge(self, fact: OptionsRead) -> Verdict:
        if not fact.unread:
            return HELD
        shown = few([flag if where is None else f"{flag} ({where})" for flag, where in fact.unread], MOST_SHOWN)
        are = "is" if len(fact.unread) == 1 else "are"
        return Found(
            expected="every option to be read by the script",
            observed=f"{shown} {are} declared, and nothing reads {'it' if are == 'is' else 'them'}",
        )
