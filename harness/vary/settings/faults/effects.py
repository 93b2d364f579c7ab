from __future__ import annotations

from harness.vary.settings.fault import SettingFault


class WithoutEffect(SettingFault):
    """A setting that the training or the score must follow from changes nothing.

    ## Why is this a bug?
    You set a learning rate, a weight decay or a seed, and the training runs without it: the value is never passed on,
    or something replaces it. A sweep over it compares the same run with itself.

    ## What to do
    Follow the name from the line that is named to the call that should get it. Pass it on, or remove it.

    ## When it is right
    A setting whose name says what it is for, and which you keep for another mode or another machine. A limit that
    nothing reaches at its value is listed as such, and not reported.
    """

    new_since = "0.5.0"
    severity = "warning"


class WithSideEffect(SettingFault):
    """A setting that must not matter to the training changes it.

    ## Why is this a bug?
    If you log, save or evaluate more often, or with more workers, you expect the same weights. Otherwise two runs that
    seem alike are not, and a run that you look at closely is another one.

    ## What to do
    Look for what the setting is used for besides: a counter that is shared, rows that a worker reads twice, an
    evaluation that leaves the model in another mode.

    ## When it is right
    Where only the random numbers are others, as an iterator of a DataLoader draws a seed: that is listed and not
    reported.
    """

    new_since = "0.5.0"
    severity = "warning"
