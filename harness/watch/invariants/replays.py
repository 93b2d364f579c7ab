"""Padding and batch independence: a row's logits depend on the row, not on its neighbours, its padding or chance."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness.watch.events_old import Forward, positional
from harness.watch.observer import Invariant, Observer, Statement, unchanged_random_state

ROWS, COLUMNS = 3, 3
"""So many rows are passed through the model alone, and so many columns of padding are added."""

PRECISE, COARSE = 1e-4, 3e-2
"""How near logits must be, as a share of the largest: in float32, and in half precision."""

LARGEST = 2**31
"""A model of more bytes is not copied."""


class Replays(Invariant):
    checks = (
        Statement("mode::evaluation-repeats", "In eval mode the same rows give the same logits again."),
        Statement("padding::neighbours-do-not-matter", "A row's logits do not depend on the other rows of its batch."),
        Statement("padding::does-not-matter", "A row's logits do not depend on how far it is padded."),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.done: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
        self.precise = True
        """Whether the model at hand is in float32."""

    def forward(self, event: Forward) -> None:
        """Look at each model once: in its first evaluation, or else at its third training batch."""
        model, seen = event.model, self.done.get(event.model)
        if seen or event.logits is None or event.batch is None:
            return
        if event.gradients or any(module.training for module in model.modules()):
            return  # no evaluation, or one with dropout on purpose
        self.done[model] = True
        size = sum(p.numel() * p.element_size() for p in model.parameters())
        if size > LARGEST or type(model).__name__ in ("DistributedDataParallel", "FullyShardedDataParallel"):
            return
        try:
            with torch.no_grad():
                twin = copy.deepcopy(model)
        except (RuntimeError, TypeError, AttributeError, NotImplementedError):
            self.observer.note(f"{type(model).__name__} cannot be copied, so no evaluation was repeated with it")
            return
        self.precise = all(p.element_size() >= 4 for p in model.parameters())
        with unchanged_random_state(), torch.no_grad():
            self._repeat(twin, event)

    def _near(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        half = not self.precise or one.element_size() < 4 or torch.is_autocast_enabled(one.device.type)
        scale = float(other.detach().float().abs().max()) if other.numel() else 0.0
        return _apart(one, other) <= (COARSE if half else PRECISE) * scale + 1e-6

    def _repeat(self, twin: nn.Module, event: Forward) -> None:
        found = event.logits
        assert found is not None
        args, kwargs = _detached(event.args), dict(_detached(event.kwargs))
        try:
            with _autocast(found):
                again = Forward(0, twin, args, kwargs, twin(*args, **kwargs), None, False, None).logits
        except Exception:
            return  # it cannot be called twice with the same
        if again is None or again.shape != found.shape or not bool(found.isfinite().all()):
            return
        if not self._near(again, found):
            self.found(
                "mode::evaluation-repeats",
                expected="the same logits from the same rows",
                observed=f"the second time they are {_apart(again, found):.2g} apart, though the model is in eval mode",
                hint="Give functional.dropout training=self.training, and draw no random numbers in eval mode.",
                where=event.where,
            )
            return
        rows = found.shape[0]
        whole = [each for each in event.tensors.values() if each.dim() > 0]
        for part in self._parts(rows) if all(len(each) == rows for each in whole) else ():
            logits = self._some(twin, args, kwargs, part, rows)
            if logits is None:
                continue
            if logits.shape != found[part].shape:
                return
            if not self._near(logits, found[part]):
                self.found(
                    "padding::neighbours-do-not-matter",
                    expected="the same logits for a row alone and among others",
                    observed=f"among other rows they are {_apart(logits, found[part]):.2g} apart",
                    hint="Look for a softmax, mean or normalisation over the batch (dim=0), and for reshapes that mix "
                    "rows.",
                    where=event.where,
                )
                return
        self._padded(twin, args, kwargs, event)

    def _parts(self, rows: int) -> list[slice]:
        """Rows alone, and two together for models that need several."""
        return [slice(row, row + 1) for row in range(min(ROWS, rows))] + [slice(0, 2)] if rows > 2 else []

    def _some(self, twin: nn.Module, args: Any, kwargs: Any, part: slice, rows: int) -> torch.Tensor | None:
        some_args, some_kwargs = _part(args, part, rows), _part(kwargs, part, rows)
        try:
            output = twin(*some_args, **some_kwargs)
        except Exception:
            return None  # it needs more rows
        return Forward(0, twin, some_args, some_kwargs, output, None, False, None).logits

    def _padded(self, twin: nn.Module, args: Any, kwargs: Any, event: Forward) -> None:
        found = event.logits
        assert found is not None
        given = dict(zip(positional(twin), args, strict=False)) | kwargs
        if len(given) < len(args) + len(kwargs) or any(isinstance(value, Mapping) for value in given.values()):
            return
        masks = [name for name, value in given.items() if "mask" in name and torch.is_tensor(value)]
        ids = next((value for name, value in given.items() if _are_ids(name, value)), None)
        if len(masks) != 1 or ids is None or given[masks[0]].shape != ids.shape or "position_ids" in given:
            return
        mask = given[masks[0]]
        hidden = ids[mask == 0]
        pad = int(hidden[0]) if len(hidden) else int(getattr(getattr(twin, "config", None), "pad_token_id", 0) or 0)
        self._bare(twin, given, ids, mask, event)
        limit = getattr(getattr(twin, "config", None), "max_position_embeddings", None)
        if limit is not None and ids.shape[1] + COLUMNS + 2 > limit:
            return
        longer = {}
        for name, value in given.items():
            if torch.is_tensor(value) and value.shape == ids.shape:
                fill = -100 if name == "labels" else pad if value is ids else 0
                extra = torch.full((len(ids), COLUMNS), fill, dtype=value.dtype, device=value.device)
                value = torch.cat([value, extra], dim=1)
            longer[name] = value
        try:
            output = twin(**longer)
        except Exception:
            return  # its length is fixed
        logits = Forward(0, twin, (), longer, output, None, False, None).logits
        if logits is None:
            return
        base = found
        if found.dim() == 3:
            logits, base = logits[:, : ids.shape[1]][mask != 0], found[mask != 0]
        if logits.shape == base.shape and not self._near(logits, base):
            self.found(
                "padding::does-not-matter",
                expected="the same logits however far a row is padded",
                observed=f"with {COLUMNS} more masked tokens of padding they are {_apart(logits, base):.2g} apart",
                hint="Use the attention mask wherever tokens are put together: attention, means, sums, maxima.",
                where=event.where,
            )

    def _bare(
        self, twin: nn.Module, given: dict[str, Any], ids: torch.Tensor, mask: torch.Tensor, event: Forward
    ) -> None:
        """A row without its padding."""
        found = event.logits
        row = next((row for row, kept in enumerate(mask.bool().all(1).tolist()) if not kept), None)
        if row is None or found is None or found.dim() != 2:
            return
        kept = mask[row].bool()
        bare = {
            name: value[row : row + 1][:, kept]
            if torch.is_tensor(value) and value.shape == ids.shape
            else _part(value, slice(row, row + 1), len(ids))
            for name, value in given.items()
        }
        try:
            logits = Forward(0, twin, (), bare, twin(**bare), None, False, None).logits
        except Exception:
            return
        here = found[row : row + 1]
        if logits is not None and logits.shape == here.shape and not self._near(logits, here):
            self.found(
                "padding::does-not-matter",
                expected="the same logits with and without padding",
                observed=f"without its {int((~kept).sum())} tokens of padding a row's are "
                f"{_apart(logits, here):.2g} apart",
                hint="Pad on the right for models with absolute positions, and use the attention mask wherever tokens "
                "are put together.",
                where=event.where,
            )


def _are_ids(name: str, value: Any) -> bool:
    whole = torch.is_tensor(value) and value.dim() == 2 and not value.is_floating_point()
    return whole and ("ids" in name or name in ("x", "inputs", "tokens", "text")) and "type" not in name


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


def _autocast(like: torch.Tensor) -> torch.autocast:
    enabled = torch.is_autocast_enabled(like.device.type)
    return torch.autocast(like.device.type, dtype=torch.get_autocast_dtype(like.device.type), enabled=enabled)


def _apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one.detach().float() - other.detach().float()).abs().max()) if one.numel() else 0.0
