"""As much of torchvision as programs of other people's sets use, with pictures that are made up.

Nothing is downloaded. Pictures are tensors: transforms that change their size or draw a variant leave them as they are.
"""

from . import datasets, models, transforms, utils

__all__ = ["datasets", "models", "transforms", "utils"]
