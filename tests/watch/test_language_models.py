"""Language models of one's own: whether a missing causal mask shows, whatever the shape of the batches."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from harness.watch import watch

WORDS, PLACES = 20, 12


class LanguageModel(nn.Module):
    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, 16), nn.Embedding(PLACES, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, batch_first=True)
        self.out = nn.Linear(16, WORDS)
        self.causal = causal

    def forward(self, tokens: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1]) if self.causal else None
        states = (self.words(tokens) + self.places.weight[: tokens.shape[1]]) * known.unsqueeze(-1)
        logits: torch.Tensor = self.out(self.layer(states, src_mask=mask))
        return logits


@pytest.mark.parametrize("rows", [5, PLACES], ids=["oblong", "square"])
@pytest.mark.parametrize("causal", [True, False])
def test_a_place_that_sees_its_target_is_named(rows: int, causal: bool) -> None:
    torch.manual_seed(0)
    model = LanguageModel(causal)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with watch(raise_errors=False) as watched:
        for _ in range(6):
            text = torch.randint(WORDS, (rows, PLACES + 1))
            logits = model(text[:, :-1], torch.ones(rows, PLACES, dtype=torch.bool))
            optimizer.zero_grad()
            nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()).backward()
            optimizer.step()
    assert set(watched.findings) == (set() if causal else {"inputs::next-token-visible"})
