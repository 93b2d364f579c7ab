from __future__ import annotations

import pytest
import torch
from torch import nn

from harness.watch.checks.model.observations.replays import OTHER_PADDING, Replayed
from tests.watch.run.account import told


class EncoderDecoder(nn.Module):
    """The mean of the text, shown or not, is added to each token of the decoder."""

    def __init__(self, masks: bool) -> None:
        super().__init__()
        self.masks, self.words, self.head = masks, nn.Embedding(20, 8), nn.Linear(8, 20)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, decoder_input_ids: torch.Tensor
    ) -> torch.Tensor:
        shown = attention_mask if self.masks else torch.ones_like(attention_mask)
        text = (self.words(input_ids) * shown[..., None]).sum(1, keepdim=True) / shown.sum(1)[:, None, None]
        said: torch.Tensor = self.head(self.words(decoder_input_ids) + text)
        return said


@pytest.mark.parametrize("targets", [3, 6, 9])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("masks", [False, True])
def test_the_tokens_of_a_decoder_are_compared_whatever_their_number(targets: int, padded: bool, masks: bool) -> None:
    def loop() -> None:
        ids = torch.randint(1, 20, (4, 6))
        ids[::2, 4:] = 0 if padded else 1
        with torch.no_grad():
            EncoderDecoder(masks).eval()(ids, (ids != 0).long(), torch.randint(1, 20, (4, targets)))

    (fact,) = told(Replayed, loop)
    assert OTHER_PADDING in fact.compared
    assert (fact.replay.longer is None) is masks
