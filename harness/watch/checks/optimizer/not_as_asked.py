from __future__ import annotations

import dataclasses
import math
from typing import Any

from harness.watch.check import Check
from harness.watch.events import TrainerMade

ASKED = {"learning_rate": ("initial_lr", "lr"), "weight_decay": ("weight_decay",)}
"""Settings of TrainingArguments that make the optimizer, and under which keys its groups have them."""


class NotAsAsked(Check):
    """TrainingArguments ask for a learning rate or a weight decay that the optimizer does not have.

    ## Why is this a bug?
    Trainer makes an optimizer from its arguments unless it is given one. An optimizer in `optimizers=(…)` keeps its own
    numbers, and those in the arguments are ignored without a word, though they are logged and kept with the run.

    ## What to do
    Give the numbers to the optimizer, or leave `optimizers` out.

    ## When it is right
    An optimizer of your own is not reported if the arguments repeat a default; ignore the warning if you use the
    arguments of another run again.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/trainer
    """

    status = "new"
    needs = "Trainer that is given an optimizer"
    in_windows = "first"

    def on_trainer_made(self, event: TrainerMade) -> None:
        optimizer, args = getattr(event.trainer, "optimizer", None), event.trainer.args
        groups = getattr(optimizer, "param_groups", None)
        if not groups:
            return
        self.looked = True
        for name, keys in ASKED.items():
            asked = getattr(args, name, None)
            if asked is None or asked == _default(args, name):
                continue
            has = [next((group[key] for key in keys if key in group), None) for group in groups]
            if not any(isinstance(each, (int, float)) and math.isclose(each, asked, rel_tol=1e-6) for each in has):
                told = ", ".join(dict.fromkeys(f"{each:g}" for each in has if isinstance(each, (int, float)))) or "none"
                self.found(
                    expected=f"the {name} of {asked:g} that the arguments ask for",
                    observed=f"the optimizer that Trainer was given has {told}, and {name}={asked:g} is ignored",
                    where=self.monitor.locator.argument(name) or event.where,
                )
                return


def _default(args: Any, name: str) -> Any:
    return next((field.default for field in dataclasses.fields(args) if field.name == name), None)
