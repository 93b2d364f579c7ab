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
    check = "inputs::next-token-visible" if ahead else "inputs::labels-not-shifted"
    assert set(watched.findings) == ({check} if visible else set())


class Convolution(nn.Module):
    """Each place sees all before it, by Fourier transforms: what it does not see reaches it by rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.filter, self.out = nn.Embedding(WORDS, 16), nn.Linear(1, 16), nn.Linear(16, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        taps = self.filter(torch.arange(float(length)).unsqueeze(1).sin())
        spectrum = torch.fft.rfft(self.words(tokens), 2 * length, dim=1) * torch.fft.rfft(taps, 2 * length, dim=0)
        logits: torch.Tensor = self.out(torch.fft.irfft(spectrum, 2 * length, dim=1)[:, :length])
        return logits


def found_in(model: nn.Module, length: int) -> set[str]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with watch(raise_errors=False) as watched:
        for _ in range(6):
            text = torch.randint(WORDS, (4, length + 1))
            logits = model(text[:, :-1])
            optimizer.zero_grad()
            nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()).backward()
            optimizer.step()
    return set(watched.findings)


def test_what_reaches_a_place_by_rounding_is_not_seen() -> None:
    torch.manual_seed(0)
    model, length = Convolution(), 1024
    with torch.no_grad():
        text = torch.randint(WORDS, (4, length))
        logits = model(text)
        text[:, length // 2] = (text[:, length // 2] + 1) % WORDS
        assert not torch.equal(model(text)[:, : length // 2], logits[:, : length // 2]), "there is some rounding"
    assert found_in(model, length) == set()


class FaintWords(LanguageModel):
    """Words that are hardly heard beside their places, as they are at first where they are drawn small."""

    def __init__(self, causal: bool) -> None:
        super().__init__(causal)
        self.places = nn.Embedding(24, 16)
        self.words.weight.data *= 0.01

    def forward(self, tokens: torch.Tensor, known: torch.Tensor | None = None) -> torch.Tensor:
        return super().forward(tokens, torch.ones_like(tokens))


@pytest.mark.parametrize("causal", [True, False])
def test_a_target_that_is_hardly_heard_is_seen(causal: bool) -> None:
    torch.manual_seed(0)
    assert found_in(FaintWords(causal), 24) == (set() if causal else {"inputs::next-token-visible"})


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


class WithItsLoss(nn.Module):
    """A language model whose forward gives its loss, and nothing else."""

    def __init__(self, causal: bool, by_hand: bool) -> None:
        super().__init__()
        self.model, self.by_hand = LanguageModel(causal), by_hand

    def forward(self, seq: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        logits = self.model(seq, torch.ones(seq.shape, dtype=torch.bool))
        if self.by_hand:
            return -logits.log_softmax(-1).gather(-1, wanted.unsqueeze(-1)).mean()
        return nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())


@pytest.mark.parametrize("by_hand", [False, True], ids=["cross_entropy", "by hand"])
@pytest.mark.parametrize(
    ("causal", "ahead", "visible"),
    [(True, 1, False), (False, 1, True), (True, 0, True)],
    ids=["right", "mask", "shift"],
)
def test_a_model_that_gives_its_loss_alone(by_hand: bool, causal: bool, ahead: int, visible: bool) -> None:
    torch.manual_seed(0)
    model = WithItsLoss(causal, by_hand)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with watch(raise_errors=False) as watched:
        for _ in range(6):
            text = torch.randint(WORDS, (5, PLACES + 1))
            optimizer.zero_grad()
            model(text[:, :-1], text[:, ahead : ahead + PLACES]).backward()
            optimizer.step()
    check = "inputs::next-token-visible" if ahead else "inputs::labels-not-shifted"
    assert set(watched.findings) == ({check} if visible else set())
    assert check in watched.looked


class WithItsTargets(nn.Module):
    """It divides the text into what goes in and what is to come."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.model = LanguageModel(causal)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        logits = self.model(text[:, :-1], torch.ones(len(text), PLACES, dtype=torch.bool))
        return nn.functional.cross_entropy(logits.transpose(1, 2), text[:, 1:])


@pytest.mark.parametrize("causal", [True, False])
def test_a_model_that_shifts_its_labels(causal: bool) -> None:
    torch.manual_seed(0)
    model = WithItsTargets(causal)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with watch(raise_errors=False) as watched:
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.randint(WORDS, (5, PLACES + 1))).backward()
            optimizer.step()
    assert set(watched.findings) == (set() if causal else {"inputs::next-token-visible"})
    assert "inputs::next-token-visible" in watched.looked


class Wrapped(nn.Module):
    """Hands on what it is given, as the module of Lightning's Fabric does."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: torch.Tensor, **kwargs: torch.Tensor) -> torch.Tensor:
        said: torch.Tensor = self.module(*args, **kwargs)
        return said


def test_a_wrapped_language_model_is_seen() -> None:
    torch.manual_seed(0)
    model = Wrapped(LanguageModel(causal=False))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with watch(raise_errors=False) as watched:
        for _ in range(6):
            text = torch.randint(WORDS, (5, PLACES + 1))
            optimizer.zero_grad()
            logits = model(text[:, :-1], torch.ones(5, PLACES, dtype=torch.bool))
            nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()).backward()
            optimizer.step()
    assert set(watched.findings) == {"inputs::next-token-visible"}
