"""What differs between two runs: each thing once, where it differs first, with the class of its cause.

What a run is given (model, settings, rows) is compared in every update; what it computes (modules' outputs, loss,
gradients, the update) only in the first that differs, and only as far as that is not explained by what it was given.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch

from harness.resume.attempt import differing
from harness.resume.journal import Journal, Update

Cause = Literal[
    "initialisation",
    "hyper-parameter",
    "data order",
    "random state",
    "another kernel or precision",
    "another computation",
]
INITIAL: Cause = "initialisation"
HYPER: Cause = "hyper-parameter"
ORDER: Cause = "data order"
RANDOM: Cause = "random state"
KERNEL: Cause = "another kernel or precision"
OTHER: Cause = "another computation"

Kept = Mapping[str, Any]
"""What :class:`harness.compare.look.Look` has kept of an update."""

SHOWN = 60


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same on both sides."""

    cause: Cause
    update: int
    """The first at which it shows, from 1."""
    what: str
    values: tuple[str, str] | tuple[()] = ()
    """Of A and of B, where they can be said."""
    tensors: tuple[str, ...] = ()
    """The names of those that differ."""
    size: float | None = None
    """The largest difference, as a share of the largest number on side A."""
    rounding: float | None = None
    """What rounding alone may make of it, in the coarser of the two types."""


@dataclass
class CompareReport:
    """Where two runs part."""

    a: str
    b: str
    updates: int = 0
    """That were compared."""
    differences: list[Difference] = field(default_factory=list)
    """The first first."""
    equal: list[str] = field(default_factory=list)
    """What was found equal where it separates causes."""
    beside: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Versions and threads that differ, and need not matter."""
    notes: list[str] = field(default_factory=list)

    @property
    def differ(self) -> bool:
        return bool(self.differences)

    def as_dict(self) -> dict[str, Any]:
        """In the form of ``--json``."""
        return {"schema": 1} | asdict(self)


# What the runs are given


def given(journals: tuple[Journal, Journal], kept: tuple[Kept, Kept]) -> Iterator[Difference]:
    """The differences in model, settings and data; ``kept`` is of update 1."""
    a, b = journals
    yield from _models(a.updates[0], b.updates[0], *kept)
    yield from _options(a, b)
    yield from _batches(a, b)


def _models(a: Update, b: Update, kept_a: Kept, kept_b: Kept) -> Iterator[Difference]:
    modules_a, modules_b = kept_a["modules"], kept_b["modules"]
    names = [name for name in modules_a if modules_a[name] != modules_b.get(name)]
    names += [name for name in modules_b if name not in modules_a]
    for name in names[:3]:
        one, other = modules_a.get(name, "none"), modules_b.get(name, "none")
        same_class = one.partition("(")[0] == other.partition("(")[0]
        linear = same_class and one.startswith(("Linear", "Embedding", "Conv"))  # its shape is no setting
        yield Difference(
            HYPER if same_class and not linear else OTHER, 1, f"module {name or 'the model'}", (one, other)
        )
    yield from _weights(a, b, kept_a["weights"], kept_b["weights"])
    if kept_a["training"] != kept_b["training"]:
        yield Difference(OTHER, 1, "training mode", (str(kept_a["training"]), str(kept_b["training"])))
    for name, one in kept_a["kernels"].items():
        if one != (other := kept_b["kernels"].get(name, "none")):
            yield Difference(KERNEL, 1, name, (one, other))


def _weights(
    a: Update, b: Update, weights_a: Mapping[str, torch.Tensor], weights_b: Mapping[str, torch.Tensor]
) -> Iterator[Difference]:
    common = [name for name in weights_a if name in weights_b]
    only = [name for name in {**weights_a, **weights_b} if name not in common]
    if only:
        yield Difference(OTHER, 1, "tensors of the model", (_count(weights_a), _count(weights_b)), tuple(only))
    shaped = [name for name in common if weights_a[name].shape != weights_b[name].shape]
    if shaped:
        one, other = (tuple(each[shaped[0]].shape) for each in (weights_a, weights_b))
        yield Difference(OTHER, 1, f"shape of {shaped[0]}", (str(one), str(other)), tuple(shaped))
    typed = [name for name in common if weights_a[name].dtype != weights_b[name].dtype]
    if typed:
        one_type, other_type = (str(each[typed[0]].dtype) for each in (weights_a, weights_b))
        yield Difference(KERNEL, 1, "type of the weights", (one_type, other_type), tuple(typed))
    rest = set(shaped) | set(typed)
    others = [name for name in differing(a.weights, b.weights) if name in common and name not in rest]
    if others:
        gaps = {name: gap(weights_a[name], weights_b[name]) for name in others}
        worst = max(gaps.values(), key=lambda each: each.size)
        yield Difference(INITIAL, 1, "the first weights", (), tuple(others), worst.size, worst.rounding)
    trained = [{name for name in each.gradients if name in common} for each in (a, b)]
    if frozen := sorted(trained[0] ^ trained[1]):
        one_count, other_count = (f"{len(each)} tensors" for each in trained)
        yield Difference(OTHER, 1, "what is trained", (one_count, other_count), tuple(frozen))


def _options(a: Journal, b: Journal) -> Iterator[Difference]:
    told = set[str]()
    for one, other in zip(a.updates, b.updates, strict=False):
        settings = _settings_of(one), _settings_of(other)
        for name in {**settings[0], **settings[1]}:
            values = settings[0].get(name, "none"), settings[1].get(name, "none")
            if name not in told and values[0] != values[1]:
                told.add(name)
                yield Difference(HYPER, one.at, name, values)
        if "scale" not in told and one.scale != other.scale:
            told.add("scale")
            yield Difference(KERNEL, one.at, "the factor of the GradScaler", (f"{one.scale:g}", f"{other.scale:g}"))


def _settings_of(update: Update) -> dict[str, str]:
    lr = update.lr[0] if len(set(update.lr)) == 1 else update.lr
    return {"lr": f"{lr:.9g}" if isinstance(lr, float) else ", ".join(f"{each:.9g}" for each in lr), **update.options}


def _batches(a: Journal, b: Journal) -> Iterator[Difference]:
    """What they are trained with. Where windows or batches have other sizes, the rows cannot be compared."""
    for one, other in zip(a.updates, b.updates, strict=False):
        if len(one.losses) != len(other.losses):
            counts = str(len(one.losses)), str(len(other.losses))
            yield Difference(HYPER, one.at, "backward passes for an update", counts)
            return
        sizes = [[len(batch.rows) for batch in each.batches] for each in (one, other)]
        if sizes[0] != sizes[1]:
            yield Difference(HYPER, one.at, "rows in a batch", (_listed(sizes[0]), _listed(sizes[1])))
            return
        rows = [[row for batch in each.batches for row in batch.rows] for each in (one, other)]
        if rows[0] != rows[1]:
            yield _rows(one, rows, a, b)
            return
        contents = [[batch.content for batch in each.batches] for each in (one, other)]
        if contents[0] != contents[1]:
            yield Difference(OTHER, one.at, "what the same rows hold")
            return


def _rows(update: Update, rows: Sequence[Sequence[str | int]], a: Journal, b: Journal) -> Difference:
    """Whether the rows are the same in another order, or others."""
    all_a, all_b = (Counter(row for u in each.updates for batch in u.batches for row in batch.rows) for each in (a, b))
    common = sum((all_a & all_b).values())
    if common or isinstance(rows[0][0], int):
        return Difference(ORDER, update.at, "the order of the rows", (_listed(rows[0][:6]), _listed(rows[1][:6])))
    return Difference(OTHER, update.at, "the rows, of which none is among the other's,")


# What the runs compute


def parting(a: Journal, b: Journal) -> int | None:
    """The first update that computes something else."""
    for number, (one, other) in enumerate(zip(a.updates, b.updates, strict=False)):
        same = one.losses == other.losses and one.gradients == other.gradients
        following = [each.updates[number + 1] if number + 1 < len(each.updates) else None for each in (a, b)]
        if following[0] is not None and following[1] is not None:
            same = same and not differing(following[0].weights, following[1].weights)
        elif a.end is not None and b.end is not None and number + 1 == len(a.updates) == len(b.updates):
            same = same and not differing(a.end.weights, b.end.weights)
        if not same or differing(one.weights, other.weights):
            return one.at
    return None


def computed(one: Update, other: Update, a: Kept, b: Kept) -> tuple[list[Difference], list[str]]:
    """The differences in one update that its rows and weights do not explain, and what was found equal on the way."""
    update = one.at
    same_weights = not differing(one.weights, other.weights)
    same_rows = [each.content for each in one.batches] == [each.content for each in other.batches]
    same_inputs = same_weights and same_rows
    same_random = torch.equal(a["random"], b["random"]) if a["random"].shape == b["random"].shape else False
    if same_inputs:
        found = _forward(update, a["calls"], b["calls"])
        if found is None:
            return _after_forward(update, one, other, a, b), ["the forward pass"]
        if not same_random and b.get("given") is not None:
            with_given = _forward(update, a["calls"], b["given"])
            if with_given is None or _is_rounding(with_given):
                drawn = Difference(RANDOM, update, f"the random numbers in {found.what}", (), (), found.size)
                rest = [] if with_given is None else [with_given]
                return [drawn, *rest], [_EQUAL_INPUTS.format("with the same random numbers", _how(with_given))]
        return [found], []
    if b.get("given") is None:
        return [], []
    found = _forward(update, a["calls"], b["given"])
    shares = " and ".join(["weights"] * (not same_weights) + ["rows"] * (not same_rows))
    if found is None or _is_rounding(found):
        return [found] if found else [], [_EQUAL_INPUTS.format(f"with the same {shares}", _how(found))]
    return [found], []


_EQUAL_INPUTS = "the forward pass, {}: {}"


def _how(found: Difference | None) -> str:
    return "bit for bit" if found is None else f"within rounding ({found.size:.1e})"


def _is_rounding(found: Difference) -> bool:
    return found.cause == KERNEL


def _forward(update: int, calls_a: Sequence[Any], calls_b: Sequence[Any]) -> Difference | None:
    """The first module that gives something else; None where none does."""
    named_b = _numbered(calls_b)
    for key, (module, tensors) in _numbered(calls_a).items():
        others = named_b.get(key, (module, None))[1]
        if others is None:
            continue
        shown = f"{key[0]} ({module})" if key[0] else module
        if [each.shape for each in tensors] != [each.shape for each in others]:
            shapes = _shapes(tensors), _shapes(others)
            return Difference(OTHER, update, f"the shape of what {shown} gives", shapes)
        gaps = [gap(x, y) for x, y in zip(tensors, others, strict=True)]
        if worst := max((each for each in gaps if each.size), key=lambda each: each.size, default=None):
            cause = KERNEL if worst.size <= worst.rounding else OTHER
            return Difference(cause, update, f"what {shown} gives", (), (), worst.size, worst.rounding)
    return None


def _numbered(calls: Sequence[Any]) -> dict[tuple[str, int], tuple[str, list[torch.Tensor]]]:
    """By the module's name and how often it had been called."""
    seen, found = Counter[str](), {}
    for name, module, tensors in calls:
        key = name or module
        found[key, seen[key]] = (module, tensors)
        seen[key] += 1
    return {(name, number): value for (name, number), value in found.items()}


def _after_forward(update: int, one: Update, other: Update, a: Kept, b: Kept) -> list[Difference]:
    """The loss, the gradients, what becomes of them before the step, the step: the first of them that differs."""
    if one.losses != other.losses:
        return [_numbers(update, "the loss", torch.stack(a["losses"]), torch.stack(b["losses"]))]
    steps = (
        ("gradients of backward", "the gradients"),
        ("gradients", "the gradients at the step"),
        ("after", "the update"),
    )
    for key, what in steps:
        found = _tensors(update, what, a[key], b[key])
        if found is not None and key == "gradients":
            one_factor, other_factor = (_factor(each["gradients of backward"], each["gradients"]) for each in (a, b))
            if one_factor and other_factor:
                factors = f"times {one_factor:.4g}", f"times {other_factor:.4g}"
                return [Difference(HYPER, update, "what becomes of the gradients before the step", factors)]
        if found is not None:
            return [found]
    return []


def _tensors(update: int, what: str, a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor]) -> Difference | None:
    gaps = {name: gap(a[name], b[name]) for name in a if name in b and a[name].shape == b[name].shape}
    others = [name for name, each in gaps.items() if each.size]
    if not others:
        return None
    worst = gaps[max(others, key=lambda name: gaps[name].size)]
    cause = KERNEL if worst.size <= worst.rounding else OTHER
    factor = _factor(a, b) if cause == OTHER else None
    multiple = "" if factor is None else f", B's being A's times {factor:.4g},"
    return Difference(cause, update, what + multiple, (), tuple(others), worst.size, worst.rounding)


def _numbers(update: int, what: str, a: torch.Tensor, b: torch.Tensor) -> Difference:
    apart = gap(a, b)
    cause = KERNEL if apart.size <= apart.rounding else OTHER
    shown = (
        _listed([f"{value:.6g}" for value in a.flatten().tolist()]),
        _listed([f"{value:.6g}" for value in b.flatten().tolist()]),
    )
    return Difference(cause, update, what, shown, (), apart.size, apart.rounding)


def _factor(a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor]) -> float | None:
    """By what all tensors of ``b`` are those of ``a`` multiplied; None where they are not."""
    norms = [math.sqrt(sum(float(tensor.double().square().sum()) for tensor in each.values())) for each in (a, b)]
    if not norms[0] or a.keys() != b.keys():
        return None
    factor = norms[1] / norms[0]
    for name in a:
        if a[name].shape != b[name].shape or gap(a[name].double() * factor, b[name]).size > 1e-4:
            return None
    return factor


# Sizes


@dataclass(frozen=True)
class Gap:
    size: float
    """The largest difference, as a share of the largest number of the first; 0.0 where all bits agree."""
    rounding: float


def gap(a: torch.Tensor, b: torch.Tensor) -> Gap:
    """How far apart two tensors of one shape are, and how far rounding may bring them."""
    rounding = max(_unit(a), _unit(b)) * 4 + 64 * 2**-23
    if a.dtype == b.dtype and torch.equal(a, b):
        return Gap(0.0, rounding)
    one, other = a.double().cpu(), b.double().cpu()
    alike = (one == other) | (one.isnan() & other.isnan())
    apart = torch.where(alike, torch.zeros_like(one), (one - other).abs())
    largest = float(one[one.isfinite()].abs().max()) if one.isfinite().any() else 0.0
    worst = float(apart.max()) if apart.numel() else 0.0
    if math.isnan(worst) or math.isinf(worst):
        return Gap(math.inf, rounding)
    return Gap(worst / largest if largest else float(bool(worst)), rounding)


def _unit(tensor: torch.Tensor) -> float:
    return torch.finfo(tensor.dtype).eps if tensor.is_floating_point() else 0.0


def _shapes(tensors: Sequence[torch.Tensor]) -> str:
    return _listed([tuple(tensor.shape) for tensor in tensors])


def _count(tensors: Mapping[str, torch.Tensor]) -> str:
    return f"{len(tensors)}, {sum(tensor.numel() for tensor in tensors.values())} numbers"


def _listed(values: Sequence[Any]) -> str:
    text = re.sub(r"[\[\]']", "", str(list(values)))
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
