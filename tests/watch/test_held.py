"""A check holds only where its fault would have been seen: what is too small to see is nothing to look at."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

from harness.watch import watch


def step(model: nn.Module, optimizer: torch.optim.Optimizer, rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    logits: torch.Tensor = model(rows)
    functional.cross_entropy(logits.flatten(0, -2), labels.flatten()).backward()
    optimizer.step()
    return logits


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def training(updates: int = 3) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for _ in range(updates):
        yield torch.randn(16, 4), torch.randint(2, (16,))


@pytest.mark.parametrize("rows", [4, 8])
def test_scores_of_few_rows(rows: int) -> None:
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for batch in training():
            step(model, optimizer, *batch)
        model.eval()
        with torch.no_grad():
            (model(torch.randn(rows, 4)).argmax(1) == torch.randint(2, (rows,))).float().mean()
    assert ("metrics::broadcast" in watched.looked) == (rows == 8)


class Changed(Dataset[Any]):
    """Images that are other ones each time: cropped elsewhere, or drawn anew."""

    def __init__(self, rows: int, how: str) -> None:
        self.images, self.labels, self.how = torch.randn(rows, 10, 10), torch.arange(rows) % 2, how

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        at = int(torch.randint(1, 3, ())) if self.how == "cropped" else 0
        image = torch.randn(10, 10) if self.how == "drawn" else self.images[index]
        return image[at : at + 8, at : at + 8].flatten(), int(self.labels[index])


@pytest.mark.parametrize("how", ["cropped", "drawn", "kept"])
def test_images_of_a_test_set_of_its_own(how: str) -> None:
    """Crops have the values of the image; rows that are drawn anew are the task's own."""
    torch.manual_seed(2)
    train, unseen = DataLoader(Changed(32, how), 8, shuffle=True), DataLoader(Changed(16, how), 8)
    model = nn.Linear(64, 2)
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for _ in range(3):
            for batch in train:
                step(model, optimizer, *batch)
            with torch.no_grad():
                for rows, labels in unseen:
                    (model(rows).argmax(1) == labels).float().mean()
    assert ("rows::evaluation-augmented" in watched.findings) == (how == "cropped")
    assert ("rows::evaluation-augmented" in watched.looked) == (how != "drawn")


@pytest.mark.parametrize("looked_at", ["training", "other"])
def test_rows_that_a_loader_to_train_with_leaves_out(looked_at: str) -> None:
    """A look at a few batches of it is no evaluation of all rows, whenever it comes."""
    batches = {"training": 3, "other": None}[looked_at]
    rows, labels = torch.randn(42, 4), torch.randint(2, (42,))
    train = DataLoader(TensorDataset(rows, labels), 4, shuffle=True, drop_last=True)
    other = DataLoader(TensorDataset(torch.randn(42, 4), labels), 4, drop_last=True)
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for _ in range(2):
            with torch.no_grad():
                for x, y in islice(train if looked_at == "training" else other, batches):
                    (model(x).argmax(1) == y).float().mean()
            for batch in train:
                step(model, optimizer, *batch)
    assert ("rows::evaluation-incomplete" in watched.findings) == (looked_at == "other")


class Deep(nn.Module):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.layers, self.aside, self.cut = nn.ModuleList([nn.Linear(4, 4) for _ in range(9)]), nn.Linear(4, 4), cut

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        aside = self.aside(rows)
        for layer in self.layers:
            rows = layer(rows).tanh()
        found: torch.Tensor = rows + (aside.detach() if self.cut else aside)
        return found


@pytest.mark.parametrize("cut", [True, False])
def test_a_small_part_without_gradients(cut: bool) -> None:
    model = Deep(cut)
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for batch in training():
            step(model, optimizer, *batch)
    assert "gradients::cut-off" not in watched.findings
    assert ("gradients::cut-off" in watched.looked) != cut
    assert cut == watched.lacking.get("gradients::cut-off", "").startswith("too few parameters without")


def test_what_a_loss_is_made_of_is_kept() -> None:
    model, kept = nn.Linear(4, 2), []
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for rows, labels in training(9):
            optimizer.zero_grad()
            kept.append(model(rows))
            margins = kept[-1].tanh().exp().sqrt().log().mul(2)
            functional.cross_entropy(margins, labels).backward()
            optimizer.step()
    assert list(watched.findings) == ["memory::graphs-kept"]


@pytest.mark.parametrize("after", [0, 1])
def test_what_is_saved_before_the_last_update(after: int, tmp_path: Path) -> None:
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for batch in training(4):
            step(model, optimizer, *batch)
        torch.save(model.state_dict(), tmp_path / "model.pt")
        for batch in training(after):
            step(model, optimizer, *batch)
    assert ("saved::not-what-was-trained" in watched.looked) == (after == 0)


class Speaks(nn.Module):
    def __init__(self, begins_at_zero: bool) -> None:
        super().__init__()
        self.embedding, self.layer = nn.Embedding(20, 8), nn.GRU(8, 8, batch_first=True)
        self.head = nn.Linear(8, 20)
        if begins_at_zero:
            nn.init.zeros_(self.head.weight)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.layer(self.embedding(ids))[0])
        return logits


@pytest.mark.parametrize("begins_at_zero", [True, False])
@pytest.mark.parametrize(("shift", "check"), [(0, "inputs::labels-not-shifted"), (1, "inputs::next-token-visible")])
def test_a_head_of_zeros_says_nothing(shift: int, check: str, begins_at_zero: bool) -> None:
    model = Speaks(begins_at_zero)
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for _ in range(3):
            ids = torch.randint(20, (5, 9))
            step(model, optimizer, ids[:, :8], ids[:, shift : 8 + shift])
    assert (check in watched.looked) != begins_at_zero
    assert (check in watched.findings) == (not shift and not begins_at_zero)


class Texts(nn.Module):
    """Says the same of everything, or not."""

    def __init__(self, young: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(6, 6)
        if young:
            nn.init.zeros_(self.table.weight)

    def forward(self, ids: torch.Tensor, *, heat: torch.Tensor) -> torch.Tensor:
        return self.table(ids) / heat


@pytest.mark.parametrize("young", [True, False])
def test_a_mean_of_means_that_is_the_mean(young: bool) -> None:
    torch.manual_seed(0)
    model = Texts(young)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    heat = torch.tensor(0.5)
    texts = [torch.randint(6, (4, length)) for length in (3, 30, 6, 12)]
    with watch(raise_errors=False) as watched:
        for ids in texts:
            optimizer.zero_grad()
            functional.cross_entropy(model(ids, heat=heat).flatten(0, 1), ids.flatten()).backward()
            optimizer.step()
        model.eval()
        total, targets = 0.0, 0
        with torch.no_grad():
            rows: Any = [(text,) for text in texts]
            for (ids,) in DataLoader(rows, batch_size=None):
                loss = functional.cross_entropy(model(ids, heat=heat).flatten(0, 1), ids.flatten())
                total, targets = total + float(loss) * ids.numel(), targets + ids.numel()
        mean = total / targets
    assert mean > 0
    assert "metrics::mean-of-means" not in watched.crashed
    assert ("metrics::mean-of-means" in watched.looked) != young


class Noisy(Dataset[Any]):
    def __init__(self, noise: float) -> None:
        self.rows, self.noise = torch.randn(16, 4), noise

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.rows[index] + self.noise * torch.randn(4), index % 2


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_rows_that_change_in_a_dataset_of_the_evaluation_s_own(noise: float) -> None:
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    train, test = DataLoader(Noisy(0.1), batch_size=8, shuffle=True), DataLoader(Noisy(noise), batch_size=8)
    with watch(raise_errors=False) as watched:
        for _ in range(2):
            model.train()
            for rows, labels in train:
                step(model, optimizer, rows, labels)
            model.eval()
            with torch.no_grad():
                for rows, labels in test:
                    (model(rows).argmax(1) == labels).float().mean()
    assert ("rows::evaluation-augmented" in watched.looked) == (noise == 0)


@pytest.mark.parametrize(("updates", "is_measured"), [(1, False), (8, True)])
def test_the_length_of_a_schedule_of_few_steps(updates: int, is_measured: bool) -> None:
    """A schedule of epochs that is stepped two epochs late ends two steps early, as rounding may have it.

    A scheduler of another loop, which is there still, has no part in it.
    """
    elsewhere = torch.optim.lr_scheduler.LinearLR(sgd(nn.Linear(4, 2)))
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    loader = DataLoader(torch.utils.data.TensorDataset(torch.randn(128, 4), torch.randint(2, (128,))), batch_size=16)
    with watch(raise_errors=False) as watched:
        scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, total_iters=5 * updates)
        for epoch in range(5):
            for number, batch in enumerate(loader, start=1):
                step(model, optimizer, *batch)
                if number > 8 - updates and (updates > 1 or epoch >= 2):
                    scheduler.step()
    for check in ("schedule::wrong-length", "schedule::may-be-too-long"):
        assert check not in watched.findings
        assert (check in watched.looked) == is_measured
        assert is_measured or watched.lacking[check].startswith("too few steps of the schedule")
    assert elsewhere.last_epoch == 0


@pytest.mark.parametrize("twice", ["training", "evaluation", "neither"])
def test_a_few_rows_that_come_twice(twice: str) -> None:
    rows, model = torch.randn(96, 4), nn.Linear(4, 2)
    optimizer = sgd(model)
    rows[3 if twice == "training" else 67] = rows[5 if twice == "training" else 65 + 2 * (twice == "neither")]
    with watch(raise_errors=False) as watched:
        for (batch,) in DataLoader(torch.utils.data.TensorDataset(rows[:64]), batch_size=16):
            step(model, optimizer, batch, torch.zeros(len(batch), dtype=torch.long))
        with torch.no_grad():
            for (batch,) in DataLoader(torch.utils.data.TensorDataset(rows[64:]), batch_size=16):
                model.eval()(batch)
    assert "rows::repeated-or-skipped" not in watched.findings
    assert ("rows::repeated-or-skipped" in watched.looked) == (twice == "neither")
