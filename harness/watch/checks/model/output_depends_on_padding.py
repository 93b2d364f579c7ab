from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Forward
from harness.watch.facts.replays import COLUMNS, OTHER_PADDING, Replays
from harness.watch.monitor import Monitor


class OutputDependsOnPadding(Check):
    """A row's logits depend on how far it is padded, though the attention mask hides the padding.

    ## Why is this a bug?
    The longest row that happens to be in the batch decides how much padding a row gets. A mean over all tokens, or the
    last token's state, then depends on that other row.

    ## What to do
    Use the attention mask wherever tokens are put together: attention, means, sums, maxima.

    To pool by the last token, take the last one that the mask keeps. Pad on the right for models with absolute
    positions.

    ## When it is right
    Models that get no mask, or that get position ids, are not tested, and differences due to rounding are not reported.

    ## References
    - https://github.com/huggingface/transformers/issues/278
    - https://github.com/huggingface/transformers/issues/2860
    """

    needs = "evaluation of padded rows"
    formerly = ("padding::does-not-matter",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.replays = monitor.fact(Replays)

    def on_forward(self, event: Forward) -> None:
        self.looked |= OTHER_PADDING in self.replays.compared
        replay = self.replays.latest
        if replay.bare is not None:
            self.found(
                expected="the same logits with and without padding",
                observed=f"without its {replay.removed} tokens of padding a row's are {replay.bare:.2g} apart",
                where=event.where,
                hint="Pad on the right for models with absolute positions, and use the attention mask wherever tokens "
                "are put together.",
            )
        if replay.longer is not None:
            self.found(
                expected="the same logits however far a row is padded",
                observed=f"with {COLUMNS} more masked tokens of padding they are {replay.longer:.2g} apart",
                where=event.where,
            )
