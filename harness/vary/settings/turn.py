"""Turning: another value for a setting, valid and clearly different."""

from __future__ import annotations

import re
from typing import Any

from harness.vary.settings.find import Setting
from harness.vary.settings.purpose import ELSEWHERE, is_side, purpose

OTHER_WORDS = {
    "linear": "constant",
    "cosine": "linear",
    "constant": "linear",
    "polynomial": "linear",
    "mean": "sum",
    "sum": "mean",
    "none": "mean",
    "relu": "gelu",
    "gelu": "relu",
    "silu": "relu",
    "tanh": "relu",
    "adam": "sgd",
    "adamw": "sgd",
    "sgd": "adamw",
    "adamw_torch": "sgd",
    "epoch": "no",
    "steps": "no",
    "no": "epoch",
    "left": "right",
    "right": "left",
    "max": "mean",
    "cls": "mean",
    "zeros": "reflect",
    "min": "max",
    "max_length": "longest",
    "longest": "max_length",
    "lora_only": "none",
    "all": "none",
}
"""Words that libraries take, to another one that they take in the same place."""

FEWER = re.compile(
    r"epochs?|.*epochs|.*steps|iters?|.*iterations|.*_iters|updates|rounds|patience|max_.*|.*length|.*_len"
)
"""Names of numbers of which half costs less than twice as many, and shows as much."""

SHARES = re.compile(
    r"(.*_)?(dropout|p|prob|probability|ratio|fraction|split|test_size|smoothing|label_smoothing|momentum|beta\d?|"
    r"betas|alpha|tau|gamma|ema|ema_decay|decay_rate|rho|threshold|quantile|val_frac|mask_prob|lambda_)"
)
"""Names of numbers that stay within 0 and 1."""


def others(setting: Setting) -> list[Any]:
    """Other values to try, the first one first; none where nothing is known that would be valid."""
    value, name = setting.value, setting.own_name.lower()
    if ELSEWHERE.fullmatch(name):
        return []
    if isinstance(value, bool):
        return [not value]
    if setting.choices:
        return [each for each in setting.choices if each != value][:2]
    if isinstance(value, str):
        other = OTHER_WORDS.get(value.lower())
        return [] if other is None else [other]
    if isinstance(value, list | tuple):
        # One of them alone: of weights that are all doubled a mean is the same.
        if all(isinstance(each, int | float) for each in value):
            return [type(value)((_half(value[0]), *value[1:]))]
        return [value[:-1]] if len(value) > 1 and purpose(name) else []
    return _numbers(name, value)


def extremes(setting: Setting) -> list[Any]:
    """Values far from its own, with which a limit is reached, or something begins: none for flags and words.

    A clip limit above all norms does nothing, nor does a schedule that changes after the last epoch.
    """
    value = setting.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    if value == 0:
        return [type(value)(1000)]
    if isinstance(value, float):
        return [value * 1e-4, 1.0 if SHARES.fullmatch(setting.own_name.lower()) and 0 < value < 1 else value * 1e4]
    return [each for each in (1, 0, 10 * value) if each != value][:2]


def _numbers(name: str, value: int | float) -> list[Any]:
    if isinstance(value, float):
        if value == 0:
            return [0.1, 1.0]
        return [value / 2, value / 4] if SHARES.fullmatch(name) and 0 < value <= 1 else [value * 2, value / 2]
    if value == 0:
        return [2] if is_side(name) else [1, 2]
    if value == 1:
        return [2, 3]
    if value < 0:
        return [value * 2]
    return [max(1, value // 2), value * 2] if FEWER.fullmatch(name) else [value * 2, max(1, value // 2)]


def _half(value: float) -> float:
    return value // 2 if isinstance(value, int) and value > 1 else value / 2
