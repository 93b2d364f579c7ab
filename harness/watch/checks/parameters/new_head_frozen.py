from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.parameters.observations.new_heads import NewHead

NAMES_SHOWN = 3
"""Names that are said."""


class NewHeadFrozen(Check):
    """A newly initialised head is frozen, so it stays random.

    ## Why is this a bug?
    `from_pretrained` initialises what the checkpoint lacks at random and says so in a warning. A head has to be
    trained. If it is frozen with the rest, or an adapter does not name it, the rest learns around random numbers. If
    only the adapter is saved, the head is not saved with it: whoever loads it gets a different head.

    ## What to do
    Don't freeze the head. With PEFT, name it in `modules_to_save`, or set `task_type`, which does that for you.

    ## When it is right
    A head whose weights your script sets itself, or that the loss does not use, is not reported. Random features on
    purpose are reported: ignore the warning there.

    ## References
    - https://huggingface.co/docs/peft/developer_guides/troubleshooting#randomly-initialized-layers
    """

    new_since = "0.3.0"
    explains = ("saved::loads-otherwise",)

    def judge(self, fact: NewHead) -> Verdict:
        if not fact.stays_random:
            return HELD
        return Found(
            expected="a trainable head, because its weights are new",
            observed=f"{', '.join(fact.tensors[:NAMES_SHOWN])} are random and frozen, so they are never trained",
            update=fact.at.updates_made,
        )
