"""Which versions are installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from packaging.requirements import Requirement

TRAINERS_ACCUMULATION = ("transformers>=4.46,<4.48", "transformers>=5,<5.2", "transformers>=5.5.4")
"""Where Trainer does not divide the loss of BERT by the micro-batches (huggingface/transformers#47688): measured on
4.46.0, 4.46.3, 4.47.1, 5.0.0, 5.1.0, 5.5.4, 5.6.0, 5.7.0 and 5.23.0; right on 4.23.1, 4.30.2, 4.40.2, 4.48.3, 4.49.0
and 4.57.6, and on 5.2.0 to 5.5.3, which divide once too often."""

TRAINER_NEVER_DIVIDES = ("transformers>=4.46,<4.48",)
"""Where it divides nobody's."""

TRAINER_DIVIDES_TWICE = ("transformers>=5.2,<5.5.4",)
"""Where it divides the loss of other models twice (huggingface/transformers#45434): measured on 5.2.0, 5.3.0, 5.4.0,
5.5.0, 5.5.1, 5.5.2 and 5.5.3; right on 5.0.0, 5.1.0, 5.5.4, 5.6.0, 5.7.0 and 5.23.0."""

EPOCH_SET_BACK = ("accelerate>=1.7,<1.15",)
"""Where the loader of skip_first_batches begins with epoch 0 (huggingface/accelerate#4071): measured on 1.7.0, 1.13.0
and 1.14.0; right on 0.28.0, 0.34.2, 1.6.0 and 1.15.0."""

TRAINER_REPLAYS = ("transformers<5", *EPOCH_SET_BACK)
"""Where Trainer does not set the epoch of that loader (huggingface/transformers#40691): measured on 4.57.6 with
accelerate 1.14.0; right with 1.6.0 and 1.15.0."""

RANDOM_STATE_NOT_LOADED = ("accelerate<1.1", "torch>=2.6")
"""Where load_state cannot read the random state: measured on 1.0.1 with torch 2.13.0; right on 1.1.1 and 1.15.0."""


def installed(*alternatives: str) -> bool:
    """Whether one of the requirements is met; True where there is none."""
    wanted = [Requirement(each) for each in alternatives]
    return not wanted or any(_meets(each) for each in wanted)


def _meets(wanted: Requirement) -> bool:
    try:
        return wanted.specifier.contains(version(wanted.name), prereleases=True)
    except PackageNotFoundError:
        return False


def installed_all(*requirements: str) -> bool:
    """Whether each of the requirements is met."""
    return all(installed(each) for each in requirements)
