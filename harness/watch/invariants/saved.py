"""Round trip: what is saved is what was trained, what is resumed goes on, and the best is the best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.optim import Optimizer

from harness.watch.events_old import Backward, Forward, Loaded, Step
from harness.watch.invariants.weights import spread_over
from harness.watch.observer import Invariant, Observer, Statement
from harness.watch.trace import held_by, raw_optimizer, share_parameters

LOOKED_AT = 4
"""Tensors of a model whose values tell whether it was trained."""


class Saved(Invariant):
    checks = (
        Statement("saved::is-what-was-trained", "What is saved are the weights that were trained."),
        Statement("saved::resumed-where-it-stopped", "A resumed run goes on with its schedule and its moments."),
        Statement("saved::best-is-best", "The checkpoint that is kept as the best is the best by its metric."),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.start: WeakKeyDictionary[nn.Module, list[torch.Tensor]] = WeakKeyDictionary()
        self.trained: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
        self.early: str | None = None
        self.late = False
        self.loaded_any = False
        self.originals: list[list[torch.Tensor]] = []
        """A few tensors of each checkpoint that the script began with."""
        self.reloaded: WeakKeyDictionary[nn.Module, str | None] = WeakKeyDictionary()
        """Models with those very tensors that were loaded when updates had been made, and where."""
        self.untrained: dict[int, str | None] = {}
        """Those that were evaluated after all training."""
        self.evaluations: list[tuple[int, float, float]] = []
        """Updates made, accuracy and loss of each."""
        self.kept: dict[int, str | None] = {}
        """After so many updates the state was asked for."""
        self.resumed: WeakKeyDictionary[Optimizer, float] = WeakKeyDictionary()
        self.restored: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
        self.resumed_schedulers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def from_checkpoint(self, event: tuple[Any, Any, str | None]) -> None:
        model, _, where = event
        self.early = None  # what was saved is what is loaded now
        self.start[model] = _values(model)
        spread = [p.detach().clone() for p in spread_over(model)]
        if self.observer.made and any(_all_equal(spread, first) for first in self.originals):
            self.reloaded[model] = where
        elif not self.observer.made:
            self.originals.append(spread)

    def forward(self, event: Forward) -> None:
        if event.model in self.reloaded and not event.gradients and event.batch is not None:
            self.untrained[id(event.model)] = self.reloaded[event.model]

    def backward(self, event: Backward) -> None:
        for forward in event.forwards:
            if forward.number in event.reached:
                self.trained[forward.model] = True
                self.reloaded.pop(forward.model, None)
        if event.batch is not None and self.untrained:
            self.untrained.clear()  # a comparison before another training

    # Saving

    def saved(self, event: tuple[Any, str | None]) -> None:
        what, where = event
        states = [what] if isinstance(what, nn.Module) else list(_states(what))
        if not states:
            return
        if self.observer.update == 1:
            self.early = self.early or where
            return
        self.late = True
        fresh = [
            model
            for model in self.start
            if any(_is_of(state, model) for state in states) and _all_equal(_values(model), self.start[model])
        ]
        trained_frozen = any(share_parameters(model, other) for model in fresh for other in self.trained)
        if fresh and self.trained and not trained_frozen:
            self.found(
                "saved::is-what-was-trained",
                expected="the model that the updates changed",
                observed=f"{type(fresh[0]).__name__} as it was loaded from its checkpoint, without any update",
                hint="Save the model that was trained (with Accelerate: accelerator.unwrap_model(model)).",
                where=where,
                update=self.observer.updates_made,
            )

    def ends(self, _: None) -> None:
        self._best_by_hand()
        for where in self.untrained.values():
            self.found(
                "saved::is-what-was-trained",
                expected="the model that was trained, in the evaluation after the training",
                observed="it has the weights of the checkpoint that the training began with",
                hint="Load what was saved after the training.",
                where=where,
                update=self.observer.updates_made,
            )
        if self.observer.complete and self.early and not self.late and not self.loaded_any and self.observer.update > 2:
            self.found(
                "saved::is-what-was-trained",
                expected="the model to be saved after its updates",
                observed="it was saved before the first one, and not again",
                hint="Save it when the training is over.",
                where=self.early,
                update=1,
            )

    # Resuming

    def loaded(self, event: Loaded) -> None:
        if isinstance(event.into, nn.Module):
            self.loaded_any = True
            self.restored[event.into] = True
            self.reloaded.pop(event.into, None)
        elif isinstance(event.into, Optimizer):
            states = event.state.get("state", {})
            steps = [float(s["step"]) for s in states.values() if isinstance(s, Mapping) and "step" in s]
            if max(steps, default=0.0) >= 1:
                self.resumed[event.into] = max(steps)
        elif "last_epoch" in event.state:
            self.resumed_schedulers[event.into] = int(event.state["last_epoch"])

    def step_begins(self, event: Step) -> None:
        optimizer = event.optimizer
        if event.number != 1:
            return
        schedulers = [each for each in self.observer.schedulers_there() if raw_optimizer(each.optimizer) is optimizer]
        made = self.resumed.get(optimizer)
        fresh = [
            model
            for model, values in self.start.items()
            if _holds(optimizer, model) and _all_equal(_values(model), values) and model not in self.restored
        ]
        if made is not None and fresh:
            self._not_resumed(f"the optimizer stands at update {made:.0f}, the model at its first weights", event)
        for scheduler in schedulers:
            stands_at = getattr(scheduler, "last_epoch", 0)
            if made is not None and stands_at == 0 and scheduler not in self.resumed_schedulers:
                self._not_resumed(f"the optimizer stands at update {made:.0f}, its scheduler at 0", event)
            elif self.resumed_schedulers.get(scheduler, 0) >= 1 and made is None and not optimizer.state:
                self._not_resumed(f"the scheduler stands at {stands_at}, the optimizer has no moments", event)

    def _not_resumed(self, observed: str, event: Step) -> None:
        self.found(
            "saved::resumed-where-it-stopped",
            expected="model, optimizer and scheduler, all as they were saved",
            observed=observed,
            hint="Save and load the state_dict() of all three.",
            where=event.where,
            update=event.update,
        )

    # The best

    def evaluated(self, event: tuple[float, float]) -> None:
        self.evaluations.append((self.observer.updates_made, *event))

    def snapshot(self, model: nn.Module) -> None:
        if any(share_parameters(model, other) for other in self.trained):
            self.kept[self.observer.updates_made] = self.observer.where()

    def _best_by_hand(self) -> None:
        """Who keeps the state after some evaluations and not after others keeps the best."""
        first = {made: (accuracy, loss) for made, accuracy, loss in reversed(self.evaluations)}
        rows = [(*first[made], made in self.kept) for made in sorted(first)]
        if rows and max(first) == self.observer.updates_made:
            rows.pop()  # at the end the state is asked for anyway
        later = [(rows[:i], *row) for i, row in enumerate(rows) if i]
        kept = [state for _, _, _, state in later]
        better = any(
            a > max(r[0] for r in earlier) and loss < min(r[1] for r in earlier) for earlier, a, loss, _ in later
        )
        if len(rows) < 2 or not rows[0][2] or all(kept) or not (any(kept) or better):
            return
        by_accuracy = all(state == (a > max(r[0] for r in earlier)) for earlier, a, _, state in later)
        by_loss = all(state == (loss < min(r[1] for r in earlier)) for earlier, _, loss, state in later)
        worst = all(state == (a < min(r[0] for r in earlier)) for earlier, a, _, state in later)
        largest = all(state == (loss > max(r[1] for r in earlier)) for earlier, _, loss, state in later)
        if (worst or largest) and not by_accuracy and not by_loss:
            what = "loss is the largest" if largest else "accuracy is the smallest"
            self.found(
                "saved::best-is-best",
                expected="the state of the evaluation with the best result",
                observed=f"the state is kept whenever the {what} so far",
                hint="A loss is better when it is smaller, accuracy and F1 when they are larger.",
                where=[place for made, place in self.kept.items() if made][-1],
                update=self.observer.updates_made,
            )

    def trainer(self, event: tuple[Any, str | None]) -> None:
        trainer, where = event
        arguments = trainer.args
        metric, greater = arguments.metric_for_best_model, arguments.greater_is_better
        if not arguments.load_best_model_at_end and not any(
            "EarlyStopping" in type(c).__name__ for c in trainer.callback_handler.callbacks
        ):
            return
        if metric is None or greater is None:
            return
        name = metric.lower().removeprefix("eval_")
        loss = name.endswith(("loss", "error", "perplexity", "mse", "mae", "wer", "cer"))
        score = any(word in name for word in ("accuracy", "f1", "precision", "recall", "matthews", "auc", "bleu"))
        if (loss and greater) or (score and not greater):
            self.found(
                "saved::best-is-best",
                expected=f"greater_is_better={not greater} for {metric}",
                observed=f"greater_is_better={greater}: the worst checkpoint is kept",
                hint="Set greater_is_better for the metric, or leave it out where the metric's name says it.",
                where=where,
            )


def _values(model: nn.Module) -> list[torch.Tensor]:
    """Copies of the last few trainable tensors, which an update changes."""
    tensors = [p for p in model.parameters() if p.requires_grad]
    return [p.detach().clone() for p in tensors[-LOOKED_AT:]]


def _states(what: Any) -> list[Any]:
    """The modules' states within what is saved."""
    if not isinstance(what, Mapping):
        return []
    if any(torch.is_tensor(value) for value in what.values()):
        return [what]
    return [state for value in what.values() for state in _states(value)]


def _is_of(state: Any, model: nn.Module) -> bool:
    if isinstance(state, nn.Module):
        return state is model
    pointers = {p.data_ptr() for p in model.parameters()}
    return any(torch.is_tensor(value) and value.numel() and value.data_ptr() in pointers for value in state.values())


def _all_equal(ones: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return len(ones) == len(others) and all(
        one.shape == other.shape and torch.equal(one.to(other.device), other)
        for one, other in zip(ones, others, strict=True)
    )


def _holds(optimizer: Optimizer, model: nn.Module) -> bool:
    mine = {id(p) for p in model.parameters()}
    return any(id(p) in mine for p in held_by(optimizer))
