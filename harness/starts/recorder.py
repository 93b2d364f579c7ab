"""The recorder: a listener that writes down each update of a loop, and kills the process where that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import Subset

from harness.digests import digest, joined, named_tensors, random_states, state_of, weights_of
from harness.starts.journal import MOST_ROWS, BatchTrained, End, Loaded, Update, Writer
from harness.starts.orders import KillPoint
from harness.torch_objects import held_by
from harness.watch.bus import OutcomeListener
from harness.watch.events import (
    Backward,
    Batch,
    Forward,
    Load,
    OptimizerMade,
    PassBegins,
    SkippedStep,
    Step,
    StepBegins,
)
from harness.watch.monitor import Monitor
from harness.watch.run.batches import tensors_in
from harness.watch.run.rows import blind_in


class _Seen:
    """Rows by what they hold, each once."""

    def __init__(self) -> None:
        self._all, self._new = set[str](), list[str]()

    def add(self, rows: Iterable[str]) -> None:
        if len(self._all) < MOST_ROWS:
            self._new += [row for row in dict.fromkeys(rows) if row not in self._all]
            self._all.update(self._new)

    def new(self) -> tuple[str, ...]:
        """Digests of rows that came since this was last called."""
        found, self._new = tuple(self._new), []
        return found


@dataclass
class Recording:
    """What the recorders of a process share with what looks at the files that it writes."""

    writer: Writer
    place: KillPoint
    most_updates: int | None
    kill: Callable[[], None]
    ended: Callable[[], None]
    """Ends the script, which makes too many updates."""
    tells_rows: bool = False
    """Whether it is written down what each row holds, also where it is told by its place."""
    tells_held_out: bool = False
    """Whether it is written down what the rows hold that are trained with and evaluated."""
    updates: int = 0
    pending: int = 0
    """Backward passes since the latest update."""
    recorders: list[Recorder] = field(default_factory=list)
    before_step: Callable[[], None] | None = None
    """Called where an update is about to be made."""

    def names_of_weights(self) -> frozenset[str]:
        """Names of the trained parameters, where they are a model's."""
        models = [model for recorder in self.recorders for model in recorder.models]
        return frozenset(name for model in models for name, each in model.named_parameters() if each.requires_grad)

    def current_weights(self) -> frozenset[str]:
        """Digests of the trained weights as they are now."""
        return frozenset(each for recorder in self.recorders for each in recorder.weights().values())


class Recorder(OutcomeListener):
    """Writes a journal of one loop."""

    id = "resume::recorder"

    def __init__(self, monitor: Monitor, recording: Recording) -> None:
        self.monitor, self._recording = monitor, recording
        recording.recorders.append(self)
        self.models: list[nn.Module] = []
        """Models that are trained, in the order of their first call."""
        self._optimizers: list[Optimizer] = []
        self._called: dict[int, BatchTrained] = {}
        """What a forward pass was given, by its number, until a backward pass comes from it."""
        self._passes: dict[int, int] = {}
        """Numbers of the passes that train, by the identity of what stands for them, which is held."""
        self._held: list[Any] = []
        self._generators: list[torch.Generator] = []
        self._begun: dict[str, str] = {}
        self._begin_window()
        self._skipped = 0
        self._evaluations: list[str] = []
        self._taught, self._tested = _Seen(), _Seen()
        self._others: dict[str, str] = {}
        self._tested_with: Batch | None = None
        """The latest batch of an evaluation: one that is left before its end is no batch of what is trained next."""
        self._own_batches = False
        """Whether the latest update was made from batches of the script's own."""
        self._update: Update | None = None
        self._made: Update | None = None
        """The latest, which another optimizer's step may still be a part of."""
        self._counted = 0
        """Number of that update, as the watch counts."""
        self._together: list[Optimizer] = []
        """Optimizers that stepped in that update."""
        self._usual = 1
        """How many did in the one before."""

    @property
    def trained(self) -> bool:
        return bool(self._optimizers)

    def _begin_window(self) -> None:
        self._batches: list[BatchTrained] = []
        self._losses: list[str] = []
        self._scale, self._modes = 1.0, ""
        self._recording.pending = 0

    # What is trained with

    def on_optimizer_made(self, event: OptimizerMade) -> None:
        self._draws_from_here()

    def on_pass_begins(self, event: PassBegins) -> None:
        if not (self._batches or self._called):
            self._draws_from_here()

    def _draws_from_here(self) -> None:
        if self._recording.tells_rows:
            self._begun = random_states(self._generators)

    def on_forward(self, event: Forward) -> None:
        if not event.gradients:
            self._evaluated(event)
            return
        if not any(event.model is each for each in self.models):
            self.models.append(event.model)
        self._modes = joined(
            f"{name} {module.training}" for name, module in event.model.named_modules(remove_duplicate=False)
        )
        self._called[event.number] = self._trained(event)

    def _trained(self, event: Forward) -> BatchTrained:
        batch = event.batch
        if batch is None or (self._own_batches and batch is self._tested_with):
            hold = tuple(_contents(event.tensors))
            if self._recording.tells_held_out:
                self._taught.add(hold)
            return BatchTrained(0, hold, _content(event.tensors), where=event.where)
        rows, number = _places(batch.indices), self._number(batch)
        if rows is not None and self._recording.tells_rows:
            rows = _in_the_whole(rows, batch.of.dataset)
        tells_rows, tells_held_out = self._recording.tells_rows, self._recording.tells_held_out
        hold = tuple(_contents(batch.data)) if rows is None or tells_rows or tells_held_out else ()
        if tells_held_out:
            self._taught.add(hold)
        kept = hold if tells_rows else ()
        return BatchTrained(number, hold if rows is None else rows, _content(batch.data), kept, batch.of.where)

    def _number(self, batch: Batch) -> int:
        """Number of the batch's pass: it gets one when the first forward that can be differentiated comes from it."""
        if id(batch.of) not in self._passes:
            self._passes[id(batch.of)] = len(self._passes) + 1
            self._held.append(batch.of)
            loader = batch.of.loader
            found = [getattr(each, "generator", None) for each in (loader, getattr(loader, "sampler", None))]
            self._generators = [each for each in found if isinstance(each, torch.Generator)]
        return self._passes[id(batch.of)]

    def _evaluated(self, event: Forward) -> None:
        self._tested_with = event.batch
        if self._recording.tells_held_out:
            self._tested.add(_contents(event.tensors if event.batch is None else event.batch.data))
        if event.logits is not None:
            self._evaluations.append(digest(event.logits))
        if not self._is_trained(event.model):
            name = type(event.model).__name__
            if name not in self._others:
                self._others[name] = joined(weights_of(event.model).values())

    def _is_trained(self, model: nn.Module) -> bool:
        trained = {id(parameter) for optimizer in self.monitor.optimizers for parameter in held_by(optimizer)}
        own = list(model.parameters())
        return not trained or not own or any(id(parameter) in trained for parameter in own)

    # Updates

    def on_backward(self, event: Backward) -> None:
        reached = [number for number in event.reached if number in self._called] or list(self._called)
        for number in sorted(reached):
            batch = self._called.pop(number)
            if batch not in self._batches:
                self._batches.append(batch)
        self._called.clear()
        self._losses.append(_exact(event.root))
        self._scale = event.scale
        recording = self._recording
        recording.pending += 1
        if recording.place.backward == (recording.updates, recording.pending):
            recording.kill()

    def on_skipped_step(self, event: SkippedStep) -> None:
        self._skipped += 1
        self._begin_window()

    def on_step_begins(self, event: StepBegins) -> None:
        if self._recording.before_step is not None:
            self._recording.before_step()
        if not any(event.optimizer is each for each in self._optimizers):
            self._optimizers.append(event.optimizer)
        if event.update != self._counted or any(event.optimizer is each for each in self._together):
            self._stop_after(self._made)
            self._made, self._counted = None, event.update
            self._usual, self._together = max(1, len(self._together)), []
        self._together.append(event.optimizer)
        optimizer, names = event.optimizer, {id(tensor): name for name, tensor in self.tensors().items()}
        named = {names[id(parameter)]: parameter for parameter in held_by(optimizer)}
        frozen = [name for name, parameter in named.items() if not parameter.requires_grad]
        update = Update(
            at=self._recording.updates + 1,
            batches=tuple(self._batches),
            losses=tuple(self._losses),
            lr=tuple(float(group["lr"]) for group in optimizer.param_groups if "lr" in group),
            options=_options(optimizer),
            scale=self._scale,
            skipped=self._skipped,
            weights=self.weights(),
            state=state_of(optimizer, names),
            gradients={name: digest(p.grad) for name, p in named.items() if p.grad is not None},
            random=random_states(self._generators),
            trained=tuple(name for name, parameter in named.items() if parameter.requires_grad),
            begun=self._begun,
            modes=joined([self._modes, *frozen]),
            evaluations=tuple(self._evaluations),
            others=dict(self._others),
            taught=self._taught.new(),
            evaluated=self._tested.new(),
            where=event.where,
        )
        self._update = update if self._made is None else _with_another(self._made, update)

    def on_step(self, event: Step) -> None:
        if self._update is not None:
            self._recording.updates += self._made is None
            self._recording.writer.write(self._update)
            self._own_batches = any(each.number == 0 for each in self._update.batches)
        self._made, self._update = self._update, None
        self._draws_from_here()
        self._begin_window()
        self._skipped, self._evaluations, self._others = 0, [], {}
        if len(self._together) >= self._usual:
            self._stop_after(self._made)

    def _stop_after(self, made: Update | None) -> None:
        """End here where an update is the last that is wanted."""
        recording = self._recording
        if made is not None and recording.place.update == made.at:
            recording.kill()
        if made is not None and recording.most_updates is not None and made.at >= recording.most_updates:
            recording.ended()

    def on_load(self, event: Load) -> None:
        kind = "module" if isinstance(event.into, nn.Module) else None
        kind = kind or ("optimizer" if isinstance(event.into, Optimizer) else "scheduler")
        self._recording.writer.write(Loaded(kind, self._recording.updates, event.where))

    # Weights

    def tensors(self) -> dict[str, torch.Tensor]:
        """Tensors of the models that are trained, and what the optimizers hold besides."""
        found = named_tensors(self.models)
        known = {id(tensor) for tensor in found.values()}
        others = {id(p): p for optimizer in self._optimizers for p in held_by(optimizer) if id(p) not in known}
        return found | {f"parameter {number}": tensor for number, tensor in enumerate(others.values())}

    def weights(self) -> dict[str, str]:
        return {name: digest(tensor) for name, tensor in self.tensors().items()}

    def end(self, failed: str | None = None, **how: Any) -> None:
        """Write down how the start ended, or why it could not be recorded."""
        weights = self.weights() if failed is None else {}
        evaluations = tuple(self._evaluations)
        how |= {"evaluations": evaluations, "others": self._others, "evaluated": self._tested.new()}
        self._recording.writer.write(End(weights, failed=failed, **how))


def _with_another(made: Update, step: Update) -> Update:
    """An update with the step of one more optimizer: those that step one after the other make one together."""
    options = {**step.options, **made.options}
    for name, value in step.options.items():
        if options[name] != value:
            options[name] += f", {value}"
    return replace(
        made,
        lr=made.lr + step.lr,
        options=options,
        weights={**step.weights, **made.weights},
        state={**made.state, **step.state},
        gradients={**step.gradients, **made.gradients},
        trained=tuple(dict.fromkeys(made.trained + step.trained)),
        taught=made.taught + step.taught,
        evaluated=made.evaluated + step.evaluated,
    )


def _options(optimizer: Optimizer) -> dict[str, str]:
    """What the groups were made with, but for the learning rate: one value where all have the same."""
    found = {"optimizer": type(optimizer).__name__}
    for name in sorted(optimizer.defaults.keys() - {"lr"}):
        given = (group.get(name) for group in optimizer.param_groups)
        values = [str(tuple(each) if isinstance(each, list) else each) for each in given]  # as betas are, read back
        found[name] = values[0] if len(set(values)) == 1 else ", ".join(values)
    return found


def _places(indices: Any) -> tuple[int, ...] | None:
    """The rows' places in the dataset, where the sampler drew whole numbers."""
    indices = indices if isinstance(indices, (list, tuple)) else [indices]
    return tuple(indices) if indices and all(isinstance(each, int) for each in indices) else None


def _in_the_whole(rows: tuple[int, ...], dataset: Any) -> tuple[int, ...]:
    """Places in what a part of a dataset is taken from, such as a split of torch's."""
    while isinstance(dataset, Subset):
        rows = tuple(int(dataset.indices[row]) for row in rows)
        dataset = dataset.dataset
    return rows


def _contents(data: Any) -> Iterable[str]:
    """A digest of each row, or of all where rows cannot be told."""
    rows = max((len(tensor) for _, tensor in tensors_in(data) if tensor.dim() > 0), default=0)
    return [row.hex() for row in blind_in(data, rows)] or [_content(data)]


def _content(data: Any) -> str:
    return joined(f"{name} {digest(tensor)}" for name, tensor in tensors_in(data))


def _exact(root: torch.Tensor) -> str:
    return float(root.detach()).hex() if root.numel() == 1 else digest(root)
