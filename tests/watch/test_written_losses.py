"""Losses that a script writes itself, read from the graph of what it differentiates."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from harness.watch import watch
from harness.watch.events import IGNORED, Forward
from harness.watch.written_losses import written_losses

ROWS, CLASSES = 6, 5
LABELS = torch.tensor([0, 3, 1, 4, 2, 3])
TARGETS = torch.linspace(-1, 1, ROWS)
EACH = torch.arange(ROWS)
MASK = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])

OF_CLASSES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gather": lambda z: -z.log_softmax(-1).gather(1, LABELS[:, None]).mean(),
    "gather, squeezed": lambda z: -z.log_softmax(-1).gather(1, LABELS[:, None]).squeeze(1).sum() / ROWS,
    "index": lambda z: -z.log_softmax(1)[EACH, LABELS].mean() / 4,
    "softmax and log": lambda z: -torch.log(z.softmax(1)[EACH, LABELS] + 1e-9).mean(),
    "one-hot": lambda z: -(functional.one_hot(LABELS, CLASSES) * torch.log(z.softmax(1))).sum(1).mean(),
    "logsumexp": lambda z: (z.logsumexp(1) - z[EACH, LABELS]).mean(),
    "logsumexp, gather": lambda z: (z.logsumexp(1) - z.gather(1, LABELS[:, None]).squeeze(1)).mean(),
    "of places": lambda z: -z.view(2, 3, CLASSES).log_softmax(-1).view(-1, CLASSES).gather(1, LABELS[:, None]).mean(),
    "of places, by index": lambda z: -z.view(2, 3, CLASSES).log_softmax(2).reshape(-1, CLASSES)[EACH, LABELS].mean(),
    "of places, three dimensions": lambda z: (
        -z.view(2, 3, CLASSES).log_softmax(-1).gather(2, LABELS.view(2, 3, 1)).squeeze(2).mean()
    ),
    "classes first": lambda z: (
        -z.view(2, 3, CLASSES).transpose(1, 2).log_softmax(1).gather(1, LABELS.view(2, 1, 3)).mean()
    ),
    "Categorical": lambda z: -torch.distributions.Categorical(logits=z).log_prob(LABELS).mean(),
}
OF_DIFFERENCES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "power": lambda p: ((p.squeeze(1) - TARGETS) ** 2).mean(),
    "the other way round": lambda p: (TARGETS - p.flatten()).pow(2).sum() / ROWS,
    "square": lambda p: torch.square(p[:, 0] - TARGETS).mean() * 0.5,
    "product": lambda p: ((difference := p[:, 0] - TARGETS) * difference).mean(),
}
UNREADABLE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a weight for each row": lambda z: -(z.log_softmax(1)[EACH, LABELS] * TARGETS).mean(),
    "no loss": lambda z: z.exp().mean(),
    "of one row": lambda z: -z.log_softmax(1)[EACH, LABELS][0],
    "a learned weight": lambda z: -(z.log_softmax(1)[EACH, LABELS] * z[:, 0]).mean(),
    "an unknown term": lambda z: -z.log_softmax(1)[EACH, LABELS].mean() + z.tanh().mean(),
    "a distillation": lambda z: -(TARGETS.softmax(0)[:CLASSES] * z.log_softmax(1)).sum(1).mean(),
}


def said(outputs: int) -> tuple[torch.Tensor, list[Forward]]:
    model, rows = nn.Linear(4, outputs), torch.randn(ROWS, 4)
    output = model(rows)
    return output, [Forward(1, model, (rows,), {}, output, gradients=True)]


@pytest.mark.parametrize("loss", OF_CLASSES.values(), ids=list(OF_CLASSES))
def test_a_cross_entropy_by_hand(loss: Callable[[torch.Tensor], torch.Tensor]) -> None:
    logits, forwards = said(CLASSES)
    (found,) = written_losses(loss(logits), forwards)
    assert found.function == "cross_entropy"
    assert torch.equal(found.input, logits)
    assert torch.equal(found.target, LABELS)


@pytest.mark.parametrize("loss", OF_DIFFERENCES.values(), ids=list(OF_DIFFERENCES))
def test_a_squared_error_by_hand(loss: Callable[[torch.Tensor], torch.Tensor]) -> None:
    output, forwards = said(1)
    (found,) = written_losses(loss(output), forwards)
    assert found.function == "mse_loss"
    assert torch.equal(found.input, output.flatten())
    assert torch.allclose(found.target, TARGETS)


def test_rows_that_a_mask_leaves_out() -> None:
    logits, forwards = said(CLASSES)
    loss = (-logits.log_softmax(1)[EACH, LABELS] * MASK).sum() / MASK.sum()
    (found,) = written_losses(loss, forwards)
    assert found.target.tolist() == [0, IGNORED, 1, 4, IGNORED, 3]


def test_logits_that_are_no_models() -> None:
    logits = torch.randn(ROWS, CLASSES, requires_grad=True)
    (found,) = written_losses(OF_CLASSES["index"](logits), [])
    assert found.function == "nll_loss"
    assert torch.allclose(found.input, logits.log_softmax(1))


def test_the_terms_of_a_sum() -> None:
    logits, forwards = said(CLASSES)
    output, others = said(1)
    loss = OF_CLASSES["index"](logits) + 0.1 * OF_DIFFERENCES["power"](output)
    assert {each.function for each in written_losses(loss, [*forwards, *others])} == {"cross_entropy", "mse_loss"}


MISTAKEN: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], int]] = {
    "index, over the rows": (lambda z: -z.log_softmax(0)[EACH, LABELS].mean(), 0),
    "gather, over the rows": (lambda z: -z.softmax(0).log().gather(1, LABELS[:, None]).mean(), 0),
    "softmax, then log_softmax": (lambda z: -z.softmax(1).log_softmax(1)[EACH, LABELS].mean(), 1),
    "softmax twice": (lambda z: -z.softmax(1).softmax(1).log().gather(1, LABELS[:, None]).mean(), 1),
}


@pytest.mark.parametrize(("loss", "dim"), MISTAKEN.values(), ids=list(MISTAKEN))
def test_probabilities_in_the_place_of_logits(loss: Callable[[torch.Tensor], torch.Tensor], dim: int) -> None:
    logits, forwards = said(CLASSES)
    (found,) = written_losses(loss(logits), forwards)
    assert found.function == "cross_entropy"
    assert torch.allclose(found.input, logits.softmax(dim))


@pytest.mark.parametrize("dim", [0, 1])
def test_what_is_no_raw_logits_is_named_by_hand_too(dim: int) -> None:
    model = nn.Linear(4, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False) as watched:
        for _ in range(4):
            optimizer.zero_grad()
            logits = model(torch.randn(ROWS, 4))
            (-(logits if dim else logits.softmax(1)).log_softmax(dim)[EACH, LABELS].mean()).backward()
            optimizer.step()
    right = dim == 1
    assert [each.check for each in watched.all_findings] == ([] if right else ["loss::not-raw-logits"])


@pytest.mark.parametrize("loss", UNREADABLE.values(), ids=list(UNREADABLE))
def test_what_is_left_alone(loss: Callable[[torch.Tensor], torch.Tensor]) -> None:
    logits, forwards = said(CLASSES)
    assert written_losses(loss(logits), forwards) == []


def test_what_was_written_to_is_left_alone() -> None:
    logits, forwards = said(CLASSES)
    probabilities = logits.softmax(1)
    loss = -torch.log(probabilities[EACH, LABELS]).mean()
    with torch.no_grad():
        probabilities.mul_(2)
    assert written_losses(loss, forwards) == []
