"""Rows of an evaluation that change, and rows that it leaves out."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from harness.watch import watch
from tests.watch.facts.small import sgd, step


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
