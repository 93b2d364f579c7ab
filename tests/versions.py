"""Which versions are installed."""

from __future__ import annotations

from importlib.metadata import version

from packaging.requirements import Requirement

TRAINERS_ACCUMULATION = ("transformers>=4.46,<4.48", "transformers>=5")
"""Where Trainer does not divide the loss of BERT by the micro-batches (huggingface/transformers#47688): measured on
4.46.0, 4.46.3, 4.47.1, 5.0.0 and 5.23.0; right on 4.23.1, 4.30.2, 4.40.2, 4.48.3, 4.49.0 and 4.57.6."""

TRAINER_DIVIDES_IF_TOLD = ("transformers<4.46", "transformers>=4.48")
"""Where it does with ``model_accepts_loss_kwargs = False``."""


def installed(*alternatives: str) -> bool:
    """Whether one of the requirements is met; True where there is none."""
    wanted = [Requirement(each) for each in alternatives]
    return not wanted or any(each.specifier.contains(version(each.name), prereleases=True) for each in wanted)
