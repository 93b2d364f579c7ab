from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection
from typing import Any

from harness.torch_objects import held_by
from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.events import StepBegins

TORCHS = {"params", "initial_lr", "param_names", "max_lr", "min_lr", "max_momentum", "base_momentum"}
"""Keys that torch and its schedulers add themselves."""

ALIASES = {"learning_rate": "lr", "wd": "weight_decay", "decay": "weight_decay", "l2": "weight_decay", "epsilon": "eps"}

MIN_NAME_SIMILARITY = 0.8
"""Similarity, as difflib measures it, from which on a key is a misspelt one."""

LONGEST_SHORT_KEY = 3
"""Letters up to which a key is too short for another to be meant because one begins with the other. Half or double of
it changes verdicts (scripts/records/margins.json)."""


class DuplicateParameters(Check):
    """The optimizer holds the same tensor more than once, so each step updates it more than once.

    ## Why is this a bug?
    torch rejects a tensor that is in two groups, but only warns about one that is in the same group twice. Each step
    updates it twice: for this part of the model, the learning rate is about twice the one that was set.

    ## What to do
    Give the optimizer each parameter once, without overlap between the lists.

    ## When it is right
    Tied weights, the same tensor under two names, are not reported if they come from `model.parameters()`, which yields
    them once. A list that is put together from parts of the model has to leave out the second one.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html
    """

    needs = "optimizer step"
    in_windows = "first"

    def judge(self, step: StepBegins) -> Verdict:
        if step.number != 1:
            return NOTHING_TO_JUDGE
        twice = sum(count > 1 for count in Counter(id(p) for p in held_by(step.optimizer)).values())
        if not twice:
            return HELD
        return Found(
            expected="each tensor once in the optimizer",
            observed=f"{twice} tensor{' is' if twice == 1 else 's are'} in the optimizer more than once, and each step "
            f"updates {'it' if twice == 1 else 'them'} more than once",
            where=step.made,
            update=1,
        )


class UnknownKey(Check):
    """A parameter group has a misspelt or wrong key, which the optimizer ignores.

    ## Why is this a bug?
    torch accepts any key in a group without a word. `{"params": ..., "weight_decay_rate": 0.0}` leaves `weight_decay`
    at its default, and the parameters that were meant to be exempt are decayed.

    ## What to do
    Write the key as the optimizer's class names it, such as lr or weight_decay.

    ## When it is right
    Keys of your own whose names do not resemble one of the optimizer's, or whose values are not numbers, are not
    reported. Neither is a key next to the one that it resembles, if that one has a value of its own.

    ## References
    - https://github.com/huggingface/transformers/issues/8396
    """

    needs = "optimizer step"
    in_windows = "first"

    def judge(self, step: StepBegins) -> Verdict:
        if step.number != 1:
            return NOTHING_TO_JUDGE
        optimizer, known = step.optimizer, sorted(step.optimizer.defaults)
        for group in optimizer.param_groups:
            for key, value in group.items():
                meant = None if key in TORCHS or key in known else _meant(key, value, known)
                if meant and group.get(meant) == optimizer.defaults.get(meant):
                    return Found(
                        expected=f"keys that {type(optimizer).__name__} reads: {', '.join(known)}",
                        observed=f"a parameter group has {key!r}, which is ignored: {meant!r} stays "
                        f"{group.get(meant)!r}",
                        where=step.made,
                        update=1,
                        hint=f"Rename {key!r} to {meant!r}.",
                        details={"key": key, "meant": meant},
                    )
        return HELD


def _meant(key: str, value: Any, known: Collection[str]) -> str | None:
    """The key that somebody who wrote ``key`` meant; None for a key of their own."""
    if not isinstance(value, (int, float, tuple)) or isinstance(value, bool):
        return None
    if ALIASES.get(key) in known:
        return ALIASES[key]
    for name in known:
        if len(name) > LONGEST_SHORT_KEY and (
            key.startswith(name) or (name.startswith(key) and len(key) > LONGEST_SHORT_KEY)
        ):
            return name
    return next(iter(difflib.get_close_matches(key, known, n=1, cutoff=MIN_NAME_SIMILARITY)), None)
