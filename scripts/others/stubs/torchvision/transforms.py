"""Transforms of pictures that are tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


class Compose:
    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, picture: Any) -> Any:
        for each in self.transforms:
            picture = each(picture)
        return picture


class ToTensor:
    """Numbers from 0 to 1, the channel first."""

    def __call__(self, picture: Any) -> Any:
        picture = torch.as_tensor(picture)
        picture = picture.permute(2, 0, 1) if picture.ndim == 3 else picture[None]
        return picture / 255


class Normalize:
    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean, self.std = (torch.as_tensor(each).float().view(-1, 1, 1) for each in (mean, std))

    def __call__(self, picture: Any) -> Any:
        return (picture - self.mean) / self.std


class Lambda:
    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, picture: Any) -> Any:
        return self.function(picture)


class Unchanged:
    def __init__(self, *arguments: Any, **named: Any) -> None: ...

    def __call__(self, picture: Any) -> Any:
        return picture


Resize = CenterCrop = RandomHorizontalFlip = RandomVerticalFlip = RandomRotation = ColorJitter = Unchanged
