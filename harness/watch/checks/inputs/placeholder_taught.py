from __future__ import annotations

from collections.abc import Iterator

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Forward
from harness.watch.facts.labels_given import LabelsGiven
from harness.watch.monitor import Monitor

PLACEHOLDERS = ("image_token_id", "image_token_index", "video_token_id", "audio_token_id", "audio_token_index")
"""Names under which a configuration says what stands for a piece of an image, a video or a sound."""


class PlaceholderTaught(Check):
    """The tokens that stand for an image or a sound are among the labels.

    ## Why is this a bug?
    A row of a vision or audio model holds hundreds of tokens that the encoder's features replace. Taught as text, they
    make up most of the loss, and they teach the model to repeat the placeholder again and again.

    ## What to do
    Set their labels to -100: `labels[labels == model.config.image_token_id] = -100`.

    ## When it is right
    Models that generate images as tokens.

    ## References
    - https://huggingface.co/docs/trl/sft_trainer#training-vision-language-models
    """

    status = "new"
    needs = "model with placeholders for images or sound"
    in_windows = "first"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.given = monitor.fact(LabelsGiven)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for each in self.given.labelled:
            for name, token in _placeholders(each.forward):
                self.looked = True
                taught = int((each.labels == token).sum())
                if taught:
                    self.found(
                        expected=f"-100 as the label of the tokens that {name} stands for",
                        observed=f"{taught} of the {int(each.counted.sum())} places that count are the token {token}",
                        where=each.forward.where,
                        update=self.monitor.update,
                    )


def _placeholders(forward: Forward) -> Iterator[tuple[str, int]]:
    config = getattr(forward.model, "config", None)
    for name in PLACEHOLDERS:
        if isinstance(token := getattr(config, name, None), int):
            yield name, token
