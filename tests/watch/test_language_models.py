"""Language models of one's own: a missing causal mask shows whatever the shape of the batches; padding in the loss."""

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
@pytest.mark.parametrize(
    ("causal", "ahead", "visible"),
    [(True, 1, False), (False, 1, True), (True, 0, True), (False, 0, False)],
    ids=["right", "no mask", "labels not shifted", "an autoencoder"],
)
def test_a_place_that_sees_its_target_is_named(rows: int, causal: bool, ahead: int, visible: bool) -> None:
    torch.manual_seed(0)
    model = LanguageModel(causal)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with watch(raise_errors=False) as watched:
        for _ in range(6):
            text = torch.randint(WORDS, (rows, PLACES + 1))
            logits = model(text[:, :-1], torch.ones(rows, PLACES, dtype=torch.bool))
            optimizer.zero_grad()
            nn.functional.cross_entropy(logits.flatten(0, 1), text[:, ahead : ahead + PLACES].flatten()).backward()
            optimizer.step()
    assert set(watched.findings) == ({"inputs::next-token-visible"} if visible else set())


class Recurrent(nn.Module):
    def __init__(self, padding: int | None) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 16, padding_idx=padding)
        self.recurrent, self.out = nn.GRU(16, 16, batch_first=True), nn.Linear(16, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self.recurrent(self.words(tokens))[0])
        return logits


@pytest.mark.parametrize(
    ("padding", "ignored", "most", "checks"),
    [
        (0, -100, 9, {"inputs::padding-in-loss"}),
        (0, 0, 9, set()),  # the loss leaves it out
        (None, -100, 9, set()),  # a word like others
        (0, -100, 1, set()),  # it may be the end of each text
    ],
)
def test_padding_is_what_the_embedding_calls_so(padding: int | None, ignored: int, most: int, checks: set[str]) -> None:
    torch.manual_seed(0)
    model = Recurrent(padding)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with watch(raise_errors=False) as watched:
        for _ in range(6):
            text = torch.randint(1, WORDS, (8, PLACES + 1))
            for row, length in zip(text, torch.randint(1, most + 1, (8,)), strict=True):
                row[-int(length) :] = 0
            logits = model(text[:, :-1])
            optimizer.zero_grad()
            targets = text[:, 1:].flatten()
            nn.functional.cross_entropy(logits.flatten(0, 1), targets, ignore_index=ignored).backward()
            optimizer.step()
    assert set(watched.findings) == checks
