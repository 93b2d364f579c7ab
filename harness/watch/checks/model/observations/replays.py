"""Replays: what a copy of a model in eval mode says of the same rows again, alone, and with other padding."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode

from harness.torch_objects import is_dense
from harness.watch.checks.model.observations.row_dimension import RowDimension
from harness.watch.events import BackwardBegins, End, Fact, Forward, positional
from harness.watch.facts.tokens import trailing
from harness.watch.facts.twins import Refused, Twin, detached, probing
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import tensors_in

REPLAYED_ROWS = 3
"""Rows that are passed through the model alone: by reasoning, a model that mixes rows shows it in each of them."""

COLUMNS = 3
"""Columns of padding that are added: by reasoning, a model that looks at padding shows it with few."""

PRECISE = 1e-4
"""Largest difference of logits, as a share of the largest, that is rounding in float32. Far above what other shapes of
a matrix product make and far below what other rows or padding do."""

COARSE = 3e-2
"""The same in half precision."""

SAME_ROWS, SINGLE_ROWS, OTHER_PADDING = "the same rows again", "single rows", "other padding"
"""What a copy is called with."""

TRIES = 3
"""Forwards of a model that are repeated, at most, until one has rows that can be asked for alone."""

DROPOUTS = (
    functional.dropout,
    functional.dropout1d,
    functional.dropout2d,
    functional.dropout3d,
    functional.alpha_dropout,
    functional.feature_alpha_dropout,
    torch.dropout,
    torch.alpha_dropout,
    torch.feature_dropout,
)
"""What returns its input where it is turned off."""

ON_PURPOSE = 3
"""Calls with the same rows, one after the other, that are a sample of predictions: by reasoning, once for the loss and
once for the accuracy are two."""

RANKINGS = {
    torch.topk: 2,
    torch.Tensor.topk: 2,
    torch.sort: 1,
    torch.Tensor.sort: 1,
    torch.argsort: 1,
    torch.Tensor.argsort: 1,
}
"""What puts scores in order, and the place of its argument ``dim``."""


@dataclass(frozen=True)
class EvaluationReplay:
    """How far apart logits came out where they should have been the same; None where they were, or were not compared.

    A model that does not repeat is not asked further, nor is one whose rows depend on their neighbours.
    """

    again: float | None = None
    """The same rows a second time, where that is the doing of dropout: a model may draw other numbers on purpose."""
    alone: float | None = None
    """A row alone, or two."""
    bare: float | None = None
    """A row without its padding."""
    removed: int = 0
    """Tokens of padding that were left out for that."""
    longer: float | None = None
    """All rows with more padding."""
    recurrent: bool = False
    """Whether it is a recurrent model, which has no mask."""


class Replayed(Fact):
    """A copy of a model in eval mode was called with what the model was given again. ``where`` is the model's call."""

    needs = "evaluation that can be repeated"
    of_run = True
    replay: EvaluationReplay = EvaluationReplay()
    compared: Collection[str] = ()
    """Ways of calling it that gave logits that could be compared."""


class DropoutInEvalMode(Fact):
    """A model in eval mode does not repeat its logits, because of a dropout, and is not called for samples."""

    of_run = True
    apart: float
    """How far apart the logits of the same rows are."""


class EvaluationReplays(Recogniser):
    """The replay of each model, made when it is first called in eval mode, within a pass of a loader or not."""

    makes = (Replayed, DropoutInEvalMode)

    def begin(self) -> None:
        self._rows = self.fact(RowDimension)
        self._tries: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
        self._widths: WeakKeyDictionary[nn.Module, set[int]] = WeakKeyDictionary()
        """Tokens of a row, of recurrent models, as they were given them."""
        self._varies: _Varies | None = None
        """Until it is known whether the model is called for samples."""

    def on_forward(self, event: Forward) -> None:
        if self._varies is not None:
            self._called_again(self._varies, event)
        model = event.model
        widths = self._widths_of(event)
        tries = self._tries.get(model, 0)
        if tries >= TRIES or model.training or (tries and not self.monitor.is_sampled()):
            return
        if event.logits is None or any(module.training for module in model.modules()):
            return  # no evaluation, or one with dropout on purpose
        if event.kwargs.get("past_key_values") is not None:
            return  # it goes on with a text, and changes what it keeps of it
        if any(torch.is_tensor(each) and not is_dense(each) for each in (*event.args, *event.kwargs.values())):
            return  # its rows cannot be told apart
        rows = self._rows.count(event)
        if tries and rows is None:
            return
        whole = event.batch is not None or (rows is not None and rows > 2)
        self._tries[model] = TRIES if whole else tries + 1
        name = type(model).__name__
        with probing(self.monitor, f"whether {name} gives the same logits again"):
            try:
                asked = _Asked(Twin(model), event, event.logits, rows, several_widths=len(widths) > 1)
            except Refused:
                self._tries[model] = TRIES
                raise
            replay = asked.replay()
            for what, raised in asked.refused.items():
                if what not in asked.called:
                    self.monitor.note(
                        f"{name} cannot be called with {what}, so its logits were not compared ({raised})"
                    )
            if replay.again is not None:
                given = next(iter(event.tensors.values()), None)
                known = None if given is None else ref(given)
                self._varies = _Varies(replay.again, event.where, self.monitor.number_of(model), known)
            self.tell(Replayed(replay=replay, compared=asked.compared, where=event.where))

    def _widths_of(self, event: Forward) -> set[int]:
        if event.model not in self._widths:
            if event.model in self._tries or not any(isinstance(each, nn.RNNBase) for each in event.model.modules()):
                return set()
            self._widths[event.model] = set()
        widths = self._widths[event.model]
        if len(widths) < 2:
            widths.update(value.shape[1] for name, value in event.tensors.items() if _are_ids(name, value))
        return widths

    def _called_again(self, seen: _Varies, event: Forward) -> None:
        before = None if seen.given is None else seen.given()
        alike = self.monitor.number_of(event.model) == seen.model and any(
            tensor is before for tensor in event.tensors.values()
        )
        if not alike:
            self._tell_of_dropout()
            return
        seen.calls += 1
        if seen.calls == ON_PURPOSE:
            self._varies = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self._tell_of_dropout()

    def on_end(self, event: End) -> None:
        self._tell_of_dropout()

    def _tell_of_dropout(self) -> None:
        if self._varies is not None:
            self.tell(DropoutInEvalMode(apart=self._varies.apart, where=self._varies.where))
            self._varies = None


@dataclass(eq=False)
class _Varies:
    """A model in eval mode whose dropout is on."""

    apart: float
    where: str | None
    model: int
    given: ReferenceType[torch.Tensor] | None
    calls: int = 1


class _WithoutDropout(TorchFunctionMode):
    """Turns off dropout that is called as a function."""

    def __init__(self) -> None:
        super().__init__()
        self.met = False

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if func in DROPOUTS:
            self.met = True
            return args[0] if args else given["input"]
        if func is functional.scaled_dot_product_attention and (given.get("dropout_p") or len(args) > 4):
            self.met = True
            args = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args
            given |= {"dropout_p": 0.0} if "dropout_p" in given else {}
        elif func is functional.multi_head_attention_forward:
            self.met = True
            given["training"] = False
        return func(*args, **given)


class _RankedRows(TorchFunctionMode):
    """Sees whether rows compete by their scores, as where each expert of a mixture chooses its best ones."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows, self.met = rows, False

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if func in RANKINGS:
            scores, place = args[0] if args else given["input"], RANKINGS[func]
            dim = given.get("dim", args[place] if len(args) > place else -1)
            self.met = self.met or (scores.is_floating_point() and scores.dim() > 0 and self._is_of_rows(scores, dim))
        return func(*args, **given)

    def _is_of_rows(self, scores: torch.Tensor, dim: int) -> bool:
        """Whether this dimension has the rows, or their tokens."""
        first = dim % scores.dim() == 0
        return scores.shape[dim] % self.rows == 0 and (first or len(scores) % self.rows != 0)


class _Asked:
    """A copy of a model that is called with what the model was given, and with parts of it.

    Args:
        found: the logits that the model gave, (rows, classes) or (rows, tokens, classes), or with the rows in another
            dimension.
        rows: how many rows it was given; None where that is not known.
        several_widths: whether a recurrent model was given rows of several widths, so that others decide the padding.
    """

    def __init__(
        self, twin: Twin, event: Forward, found: torch.Tensor, rows: int | None, *, several_widths: bool = False
    ) -> None:
        self.several_widths = several_widths
        self.twin, self.model, self.found, self.rows = twin, twin.model, found, rows
        self._given = [event.args, event.kwargs]
        self.args, self.kwargs = detached(event.args), dict(detached(event.kwargs))
        self.precise = all(p.element_size() >= 4 for p in self.model.parameters())
        self.called: set[str] = set()
        """Ways in which it could be called."""
        self.compared: set[str] = set()
        """Ways that gave logits that could be compared."""
        self.refused: dict[str, str] = {}
        """What it raised, by what it was called with."""

    def replay(self) -> EvaluationReplay:
        """Ask for the same rows again, then for single ones, then with other padding."""
        found = self.found
        again = self._logits(SAME_ROWS, self.args, self.kwargs)
        if again is None or again.shape != found.shape or not bool(found.isfinite().all()) or self._writes():
            return EvaluationReplay()
        self.compared.add(SAME_ROWS)
        if not self._near(again, found):
            return EvaluationReplay(again=_apart(again, found) if self._repeats_without_dropout() else None)
        for part in self._parts():
            args, kwargs = _part(self.args, part, self.rows), _part(self.kwargs, part, self.rows)
            logits = self._logits(SINGLE_ROWS, args, kwargs)
            if logits is None:
                continue
            among = self._narrowed(part, logits.shape)
            if among is None:
                return EvaluationReplay()
            self.compared.add(SINGLE_ROWS)
            if not self._near(logits, among):
                if self._ranks_rows():
                    return EvaluationReplay()
                return EvaluationReplay(alone=_apart(logits, among))
        return self._padded()

    def _writes(self) -> bool:
        """Whether the model changed what it was given, so that it was not given now what it was given before."""
        before, now = ([each for _, each in tensors_in(given)] for given in (self._given, [self.args, self.kwargs]))
        return not all(map(torch.equal, before, now))

    def _repeats_without_dropout(self) -> bool:
        off = _WithoutDropout()
        with off:
            first, second = (self._logits(SAME_ROWS, self.args, self.kwargs) for _ in range(2))
        return off.met and first is not None and second is not None and self._near(first, second)

    def _ranks_rows(self) -> bool:
        ranked = _RankedRows(self.rows or 1)
        with ranked:
            self._logits(SAME_ROWS, self.args, self.kwargs)
        return ranked.met

    def _parts(self) -> list[slice]:
        """Rows alone, and two together for models that need several."""
        if self.rows is None or self.rows <= 2 or any(_uses_the_batch(module) for module in self.model.modules()):
            return []
        return [slice(row, row + 1) for row in range(REPLAYED_ROWS)] + [slice(0, 2)]

    def _narrowed(self, part: slice, shape: torch.Size) -> torch.Tensor | None:
        """The logits of a few rows among the others; None where ``shape`` is not that of these rows' logits alone."""
        size = part.stop - part.start
        other = [place for place, length in enumerate(self.found.shape) if shape[place : place + 1] != (length,)]
        if len(shape) != self.found.dim() or len(other) != 1:
            return None
        (place,) = other
        if self.found.shape[place] != self.rows or shape[place] != size:
            return None
        return self.found.narrow(place, part.start, size)

    def _padded(self) -> EvaluationReplay:
        given = dict(zip(positional(self.model), self.args, strict=False)) | self.kwargs
        if len(given) < len(self.args) + len(self.kwargs) or any(isinstance(each, Mapping) for each in given.values()):
            return EvaluationReplay()
        masks = [value for name, value in given.items() if "mask" in name and torch.is_tensor(value)]
        ids = next((value for name, value in given.items() if _are_ids(name, value)), None)
        if not masks and ids is not None and self.several_widths and len(ids) == len(self.found):
            return self._read_to_the_end(given, ids)
        if len(masks) != 1 or ids is None or masks[0].shape != ids.shape or "position_ids" in given:
            return EvaluationReplay()
        hidden = _hidden(ids, masks[0])
        if hidden is None or len(ids) != len(self.found):
            return EvaluationReplay()
        bare, removed = self._bare(given, ids, hidden)
        return EvaluationReplay(bare=bare, removed=removed, longer=self._longer(given, ids, masks[0], hidden))

    def _read_to_the_end(self, given: Mapping[str, Any], ids: torch.Tensor) -> EvaluationReplay:
        """A row without its padding, of a recurrent model whose embeddings say what that is."""
        embeddings = [each for each in self.model.modules() if isinstance(each, nn.Embedding)]
        padding = {each.padding_idx for each in embeddings}
        if len(padding) != 1 or (pad := padding.pop()) is None:
            return EvaluationReplay()
        hidden = trailing(ids, pad)
        hidden = hidden & torch.cat((torch.zeros_like(hidden[:, :1]), hidden[:, :-1]), 1)  # the first may end the text
        bare, removed = self._bare(given, ids, hidden)
        return EvaluationReplay(bare=bare, removed=removed, recurrent=True)

    def _bare(self, given: Mapping[str, Any], ids: torch.Tensor, hidden: torch.Tensor) -> tuple[float | None, int]:
        """A row without its padding: how far apart it is, and how many tokens were left out."""
        row = next((row for row, padded in enumerate(hidden.any(1).tolist()) if padded), None)
        if row is None or self.found.dim() > 2:
            return None, 0
        kept, only = ~hidden[row], slice(row, row + 1)
        bare = {
            name: value[only][:, kept] if _is_like(value, ids) else _part(value, only, len(ids))
            for name, value in given.items()
        }
        return self._difference(self._logits(OTHER_PADDING, (), bare), self.found[only]), int((~kept).sum())

    def _longer(
        self, given: Mapping[str, Any], ids: torch.Tensor, mask: torch.Tensor, hidden: torch.Tensor
    ) -> float | None:
        """All rows with more padding."""
        config = getattr(self.model, "config", None)
        limit = getattr(config, "max_position_embeddings", None)
        if limit is not None and ids.shape[1] + COLUMNS + 2 > limit:
            return None
        padding, hiding = ids[hidden], mask[hidden]
        pad = int(padding[0]) if len(padding) else int(getattr(config, "pad_token_id", 0) or 0)
        hide = int(hiding[0]) if len(hiding) else int(not mask[0, 0])
        longer = {}
        for name, value in given.items():
            if _is_like(value, ids):
                fill = -100 if name == "labels" else pad if value is ids else hide if value is mask else 0
                value = torch.cat([value, value.new_full((len(ids), COLUMNS), fill)], dim=1)
            longer[name] = value
        logits, found = self._logits(OTHER_PADDING, (), longer), self.found
        if logits is not None and found.shape[:-1] == ids.shape:  # else they are no tokens', or those of a decoder
            logits = logits[:, : ids.shape[1]]
            if logits.shape == found.shape:
                logits, found = logits[~hidden], found[~hidden]
        return self._difference(logits, found)

    def _logits(self, what: str, args: Any, kwargs: Mapping[str, Any]) -> torch.Tensor | None:
        """The logits of a call; None where it gives none, or raises."""
        try:
            found = self.twin.logits(args, kwargs)
        except Refused as refused:
            self.refused.setdefault(what, str(refused))
            return None
        self.called.add(what)
        return found

    def _difference(self, one: torch.Tensor | None, other: torch.Tensor) -> float | None:
        if one is None or one.shape != other.shape:
            return None
        self.compared.add(OTHER_PADDING)
        return None if self._near(one, other) else _apart(one, other)

    def _near(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        half = not self.precise or one.element_size() < 4 or torch.is_autocast_enabled(one.device.type)
        scale = float(other.detach().float().abs().max()) if other.numel() else 0.0
        return _apart(one, other) <= (COARSE if half else PRECISE) * scale + 1e-6


def _uses_the_batch(module: nn.Module) -> bool:
    """Whether it normalises by the rows at hand even in eval mode, as it was asked to."""
    return isinstance(module, _BatchNorm) and module.running_mean is None


def _hidden(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor | None:
    """Which tokens are padding that the mask hides: at one end of each row and all alike; None where it is otherwise.

    Some masks are true where a token is hidden, and others where it is kept.
    """
    if not bool(((mask == 0) | (mask == 1)).all()) or (mask.is_floating_point() and not bool(mask.any())):
        return None  # or one that is added to the scores
    for hidden in (mask == 0, mask == 1):
        steps = hidden.int().diff(dim=1)
        at_one_end = bool((steps >= 0).all()) or bool((steps <= 0).all())
        if at_one_end and not bool(hidden.all(1).any()) and bool((ids[hidden] == ids[hidden][:1]).all()):
            return hidden
    return None


def _are_ids(name: str, value: Any) -> bool:
    whole = torch.is_tensor(value) and value.dim() == 2 and not value.is_floating_point()
    return whole and ("ids" in name or name in ("x", "inputs", "tokens", "text")) and "type" not in name


def _is_like(value: Any, ids: torch.Tensor) -> bool:
    return torch.is_tensor(value) and value.shape == ids.shape


def _part(value: Any, part: slice, rows: int | None) -> Any:
    if torch.is_tensor(value):
        return value[part] if value.dim() and len(value) == rows else value
    if isinstance(value, Mapping):
        return {name: _part(each, part, rows) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_part(each, part, rows) for each in value)
    return value


def _apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one.detach().float() - other.detach().float()).abs().max()) if one.numel() else 0.0
