"""Replays: what a copy of a model says of its first evaluation's rows again, alone, and with other padding."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import torch
from torch import nn

from harness.torch_objects import unchanged_random_state
from harness.watch.check import Fact
from harness.watch.events import Forward, positional
from harness.watch.locate import from_signal_handler

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

ROWS = 3
"""Rows that are passed through the model alone: by reasoning, a model that mixes rows shows it in each of them."""

COLUMNS = 3
"""Columns of padding that are added: by reasoning, a model that looks at padding shows it with few."""

PRECISE = 1e-4
"""Largest difference of logits, as a share of the largest, that is rounding in float32: a guess, far above what other
shapes of a matrix product make and far below what other rows or padding do."""

COARSE = 3e-2
"""The same in half precision."""

SAME_ROWS, SINGLE_ROWS, OTHER_PADDING = "the same rows again", "single rows", "other padding"
"""What a copy is called with."""

LARGEST = 2**31
"""Bytes up to which a model is copied: a guess of what fits beside it."""


@dataclass(frozen=True)
class Replay:
    """How far apart logits came out where they should have been the same; None where they were, or were not compared.

    A model that does not repeat is not asked further, nor is one whose rows depend on their neighbours.
    """

    again: float | None = None
    """The same rows a second time."""
    alone: float | None = None
    """A row alone, or two."""
    bare: float | None = None
    """A row without its padding."""
    removed: int = 0
    """Tokens of padding that were left out for that."""
    longer: float | None = None
    """All rows with more padding."""


class Replays(Fact):
    """The replay of each model, made in its first evaluation."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._seen: WeakSet[nn.Module] = WeakSet()
        self.latest = Replay()
        """Of the forward at hand."""
        self.compared: frozenset[str] = frozenset()
        """What its logits were compared with."""

    def on_forward(self, event: Forward) -> None:
        self.latest, self.compared = Replay(), frozenset()
        model = event.model
        if model in self._seen or event.logits is None or event.batch is None:
            return
        if event.gradients or any(module.training for module in model.modules()):
            return  # no evaluation, or one with dropout on purpose
        self._seen.add(model)
        if not can_be_copied(model):
            return
        with unchanged_random_state(), torch.no_grad():
            try:
                twin = copy.deepcopy(model)
            except (RuntimeError, TypeError, AttributeError, NotImplementedError) as error:
                if from_signal_handler(error):
                    raise
                self.monitor.note(f"{type(model).__name__} cannot be copied, so no evaluation was repeated with it")
                return
            replayed = _Twin(twin, event, event.logits)
            self.latest = replayed.replay()
            self.compared = frozenset(replayed.compared)
        for what, raised in replayed.refused.items():
            if what not in replayed.called:
                name = type(model).__name__
                self.monitor.note(f"{name} cannot be called with {what}, so its logits were not compared ({raised})")


def can_be_copied(model: nn.Module) -> bool:
    """Whether there is room for a copy, and calling it concerns this process alone."""
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    return size <= LARGEST and type(model).__name__ not in ("DistributedDataParallel", "FullyShardedDataParallel")


class _Twin:
    """A copy of a model, which is called with what the model was given.

    Args:
        found: the logits that the model gave, (rows, classes) or (rows, tokens, classes).
    """

    def __init__(self, model: nn.Module, event: Forward, found: torch.Tensor) -> None:
        self.model, self.found = model, found
        self.args, self.kwargs = _detached(event.args), dict(_detached(event.kwargs))
        self.by_rows = all(len(tensor) == len(found) for tensor in event.tensors.values() if tensor.dim() > 0)
        """Whether all that it was given has the logits' rows."""
        self.precise = all(p.element_size() >= 4 for p in model.parameters())
        self.called: set[str] = set()
        """With what it could be called."""
        self.compared: set[str] = set()
        """Of that, what gave logits that could be compared."""
        self.refused: dict[str, str] = {}
        """What it raised, by what it was called with."""

    def replay(self) -> Replay:
        """Ask for the same rows again, then for single ones, then with other padding."""
        found = self.found
        again = self._logits(SAME_ROWS, self.args, self.kwargs)
        if again is None or again.shape != found.shape or not bool(found.isfinite().all()):
            return Replay()
        self.compared.add(SAME_ROWS)
        if not self._near(again, found):
            return Replay(again=_apart(again, found))
        for part in self._parts():
            args, kwargs = _part(self.args, part, len(found)), _part(self.kwargs, part, len(found))
            logits = self._logits(SINGLE_ROWS, args, kwargs)
            if logits is None:
                continue
            if logits.shape != found[part].shape:
                return Replay()
            self.compared.add(SINGLE_ROWS)
            if not self._near(logits, found[part]):
                return Replay(alone=_apart(logits, found[part]))
        return self._padded()

    def _parts(self) -> list[slice]:
        """Rows alone, and two together for models that need several."""
        if not self.by_rows or len(self.found) <= 2:
            return []
        return [slice(row, row + 1) for row in range(ROWS)] + [slice(0, 2)]

    def _padded(self) -> Replay:
        given = dict(zip(positional(self.model), self.args, strict=False)) | self.kwargs
        if len(given) < len(self.args) + len(self.kwargs) or any(isinstance(each, Mapping) for each in given.values()):
            return Replay()
        masks = [value for name, value in given.items() if "mask" in name and torch.is_tensor(value)]
        ids = next((value for name, value in given.items() if _are_ids(name, value)), None)
        if len(masks) != 1 or ids is None or masks[0].shape != ids.shape or "position_ids" in given:
            return Replay()
        bare, removed = self._bare(given, ids, masks[0])
        return Replay(bare=bare, removed=removed, longer=self._longer(given, ids, masks[0]))

    def _bare(self, given: Mapping[str, Any], ids: torch.Tensor, mask: torch.Tensor) -> tuple[float | None, int]:
        """A row without its padding: how far apart it is, and how many tokens were left out."""
        row = next((row for row, kept in enumerate(mask.bool().all(1).tolist()) if not kept), None)
        if row is None or self.found.dim() != 2:
            return None, 0
        kept, only = mask[row].bool(), slice(row, row + 1)
        bare = {
            name: value[only][:, kept] if _is_like(value, ids) else _part(value, only, len(ids))
            for name, value in given.items()
        }
        return self._difference(self._logits(OTHER_PADDING, (), bare), self.found[only]), int((~kept).sum())

    def _longer(self, given: Mapping[str, Any], ids: torch.Tensor, mask: torch.Tensor) -> float | None:
        """All rows with more padding."""
        config = getattr(self.model, "config", None)
        limit = getattr(config, "max_position_embeddings", None)
        if limit is not None and ids.shape[1] + COLUMNS + 2 > limit:
            return None
        hidden = ids[mask == 0]
        pad = int(hidden[0]) if len(hidden) else int(getattr(config, "pad_token_id", 0) or 0)
        longer = {}
        for name, value in given.items():
            if _is_like(value, ids):
                fill = -100 if name == "labels" else pad if value is ids else 0
                value = torch.cat([value, value.new_full((len(ids), COLUMNS), fill)], dim=1)
            longer[name] = value
        logits, found = self._logits(OTHER_PADDING, (), longer), self.found
        if logits is not None and found.dim() == 3:
            logits, found = logits[:, : ids.shape[1]][mask != 0], found[mask != 0]
        return self._difference(logits, found)

    def _logits(self, what: str, args: Any, kwargs: Mapping[str, Any]) -> torch.Tensor | None:
        """The logits of a call; None where it gives none, or raises."""
        try:
            output = self.model(*args, **kwargs)
        except Exception as error:
            if from_signal_handler(error):
                raise
            self.refused.setdefault(what, f"{type(error).__name__}: {error}".splitlines()[0])
            return None
        self.called.add(what)
        return Forward(0, self.model, args, kwargs, output).logits

    def _difference(self, one: torch.Tensor | None, other: torch.Tensor) -> float | None:
        if one is None or one.shape != other.shape:
            return None
        self.compared.add(OTHER_PADDING)
        return None if self._near(one, other) else _apart(one, other)

    def _near(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        half = not self.precise or one.element_size() < 4 or torch.is_autocast_enabled(one.device.type)
        scale = float(other.detach().float().abs().max()) if other.numel() else 0.0
        return _apart(one, other) <= (COARSE if half else PRECISE) * scale + 1e-6


def _are_ids(name: str, value: Any) -> bool:
    whole = torch.is_tensor(value) and value.dim() == 2 and not value.is_floating_point()
    return whole and ("ids" in name or name in ("x", "inputs", "tokens", "text")) and "type" not in name


def _is_like(value: Any, ids: torch.Tensor) -> bool:
    return torch.is_tensor(value) and value.shape == ids.shape


def _detached(value: Any) -> Any:
    if torch.is_tensor(value):
        return value.detach()
    if isinstance(value, Mapping):
        return {name: _detached(each) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_detached(each) for each in value)
    return value


def _part(value: Any, part: slice, rows: int) -> Any:
    if torch.is_tensor(value):
        return value[part] if value.dim() and len(value) == rows else value
    if isinstance(value, Mapping):
        return {name: _part(each, part, rows) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_part(each, part, rows) for each in value)
    return value


def _apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one.detach().float() - other.detach().float()).abs().max()) if one.numel() else 0.0
