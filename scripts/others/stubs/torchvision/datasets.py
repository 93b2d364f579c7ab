"""Sets of pictures: of each class the same pattern, with noise of each picture's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch.utils.data import Dataset


class Pictures(Dataset[Any]):
    """``data`` is uint8 of shape (rows, height, width), or (rows, height, width, 3); ``targets`` are the classes."""

    shape: ClassVar[tuple[int, ...]]
    classes: ClassVar[int]
    rows: ClassVar[tuple[int, int]]
    """For training, and for testing."""

    def __init__(
        self,
        root: Any = None,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ) -> None:
        generator = torch.Generator().manual_seed(7)
        patterns = torch.randint(0, 200, (self.classes, *self.shape), generator=generator)
        rows = self.rows[0] if train else self.rows[1]
        generator.manual_seed(8 if train else 9)
        self.targets = torch.randint(0, self.classes, (rows,), generator=generator)
        noise = torch.randint(0, 120, (rows, *self.shape), generator=generator)
        self.data = (patterns[self.targets] * 0.65 + noise).clamp(0, 255).to(torch.uint8)
        self.transform, self.target_transform = transform, target_transform

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        picture, target = self.data[index], int(self.targets[index])
        if self.transform is not None:
            picture = self.transform(picture)
        return picture, target if self.target_transform is None else self.target_transform(target)


class MNIST(Pictures):
    shape, classes, rows = (28, 28), 10, (700, 700)


class FashionMNIST(Pictures):
    shape, classes, rows = (28, 28), 10, (12_000, 1_000)


class CIFAR10(Pictures):
    shape, classes, rows = (32, 32, 3), 10, (192, 24)


class CIFAR100(Pictures):
    shape, classes, rows = (32, 32, 3), 100, (192, 24)


class FakeData(Pictures):
    shape, classes, rows = (64, 64, 3), 10, (96, 96)

    def __init__(self, size: int = 1000, image_size: tuple[int, int, int] = (3, 64, 64), **more: Any) -> None:
        super().__init__(transform=more.get("transform"))
