"""What differs between two runs: each thing once, where it differs first, with the class of its cause.

What a run is given (model, settings, rows) is compared in every update; what it computes (modules' outputs, loss,
gradients, the update) only in the first that differs, and only as far as that is not explained by what it was given.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import torch

from harness.resume.attempt import differing
from harness.resume.journal import Digests, Journal, Update
from harness.watch.facts.batches import tensors_in

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

NUMBER = r"\d+(\.\d+)?(e-?\d+)?"

KERNELS = ("fused", "foreach", "capturable")
"""Options of an optimizer that choose how it computes the same."""

Rung = Literal[
    "model", "options", "window", "rows", "content", "random", "forward", "loss", "gradients", "step", "metrics"
]
"""What is compared, in the order in which one follows from the other."""

EXPLAINS: dict[Rung, tuple[Rung, ...]] = {
    "model": ("random", "forward", "loss", "gradients", "step"),
    "options": ("step",),
    "window": ("random", "forward", "loss", "gradients", "step"),
    "content": ("random", "forward", "loss", "gradients", "step"),
}
"""What follows from a difference in what is given, in the same update and in those after."""

Kept = Mapping[str, Any]
"""What :class:`harness.compare.look.Look` has kept of an update."""

SHOWN = 60


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same on both sides."""

    cause: Cause
    rung: Rung
    update: int
    """The first at which it shows, from 1."""
    what: str
    values: tuple[str, str] | tuple[()] = ()
    """Of A and of B, where they can be said."""
    tensors: tuple[str, ...] = ()
    """The names of those that differ."""
    size: float | None = None
    """The largest difference, as a share of the largest number on side A; None also where a side is not finite."""
    rounding: float | None = None
    """What rounding alone may make of it, in the coarser of the two types."""

    def __post_init__(self) -> None:
        if self.size is not None and not math.isfinite(self.size):  # which JSON has no number for
            object.__setattr__(self, "size", None)


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
    releases: dict[str, str] = field(default_factory=dict)
    """Of a library that was bisected, each that was tried, and what came of it."""

    @property
    def differ(self) -> bool:
        return bool(self.differences)

    def as_dict(self) -> dict[str, Any]:
        """In the form of ``--json``."""
        return {"schema": 1} | asdict(self)


def beside(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """What differs between two fingerprints, a library by its name."""
    sides = dict(_flat(one)), dict(_flat(other))
    values = {name: (sides[0].get(name, "none"), sides[1].get(name, "none")) for name in {**sides[0], **sides[1]}}
    return {name: (a, b) for name, (a, b) in values.items() if a != b}


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, "" if name == "libraries" else f"{before}{name} ")
        else:
            yield before + name, str(value)


# What the runs are given


def given(journals: tuple[Journal, Journal], kept: tuple[Kept, Kept]) -> Iterator[Difference]:
    """The differences in model, settings and data; ``kept`` is of update 1."""
    a, b = journals
    yield from _models(a.updates[0], b.updates[0], *kept)
    yield from _options(a, b)
    yield from _batches(a, b)


def _models(a: Update, b: Update, kept_a: Kept, kept_b: Kept) -> Iterator[Difference]:
    yield from _modules(1, kept_a, kept_b)
    yield from _weights(a, b, kept_a["weights"], kept_b["weights"])
    for name, one in kept_a["kernels"].items():
        if one != (other := kept_b["kernels"].get(name, "none")):
            yield Difference(KERNEL, "model", 1, name, (one, other))


def _modules(update: int, a: Kept, b: Kept) -> Iterator[Difference]:
    """Modules that say something else of themselves, three at most."""
    modules_a, modules_b = a["modules"], b["modules"]
    names = [name for name in modules_a if modules_a[name] != modules_b.get(name)]
    names += [name for name in modules_b if name not in modules_a]
    for name in names[:3]:
        one, other = modules_a.get(name, "none"), modules_b.get(name, "none")
        only_numbers = re.sub(NUMBER, "", one) == re.sub(NUMBER, "", other)
        sized = one.startswith(("Linear", "Embedding", "Conv"))  # what differs there is a shape
        yield Difference(
            HYPER if only_numbers and not sized else OTHER,
            "model",
            update,
            f"module {name or 'the model'}",
            (one, other),
        )


def _weights(
    a: Update, b: Update, weights_a: Mapping[str, torch.Tensor], weights_b: Mapping[str, torch.Tensor]
) -> Iterator[Difference]:
    common = [name for name in weights_a if name in weights_b]
    only = [name for name in {**weights_a, **weights_b} if name not in common]
    if only:
        yield Difference(OTHER, "model", 1, "tensors of the model", (_count(weights_a), _count(weights_b)), tuple(only))
    shaped = [name for name in common if weights_a[name].shape != weights_b[name].shape]
    if shaped:
        one, other = (tuple(each[shaped[0]].shape) for each in (weights_a, weights_b))
        yield Difference(OTHER, "model", 1, f"shape of {shaped[0]}", (str(one), str(other)), tuple(shaped))
    typed = [name for name in common if weights_a[name].dtype != weights_b[name].dtype]
    if typed:
        one_type, other_type = (str(each[typed[0]].dtype) for each in (weights_a, weights_b))
        yield Difference(KERNEL, "model", 1, "type of the weights", (one_type, other_type), tuple(typed))
    gaps = {name: gap(weights_a[name], weights_b[name]) for name in common if name not in {*shaped, *typed}}
    if others := [name for name, each in gaps.items() if each.size]:
        worst = max(gaps.values(), key=lambda each: each.size)
        yield Difference(INITIAL, "model", 1, "the first weights", (), tuple(others), worst.size, worst.rounding)
    trained = [{name for name in each.gradients if name in common} for each in (a, b)]
    if frozen := sorted(trained[0] ^ trained[1]):
        one_count, other_count = (f"{len(each)} tensors" for each in trained)
        yield Difference(OTHER, "model", 1, "what is trained", (one_count, other_count), tuple(frozen))


def _options(a: Journal, b: Journal) -> Iterator[Difference]:
    told = set[str]()
    for one, other in zip(a.updates, b.updates, strict=False):
        settings = _settings_of(one), _settings_of(other)
        for name in {**settings[0], **settings[1]}:
            values = settings[0].get(name, "none"), settings[1].get(name, "none")
            if name not in told and values[0] != values[1]:
                told.add(name)
                yield Difference(KERNEL if name in KERNELS else HYPER, "options", one.at, name, values)
        if "scale" not in told and one.scale != other.scale:
            told.add("scale")
            yield Difference(
                KERNEL, "options", one.at, "the factor of the GradScaler", (f"{one.scale:g}", f"{other.scale:g}")
            )


def _settings_of(update: Update) -> dict[str, str]:
    lr = update.lr[0] if len(set(update.lr)) == 1 else update.lr
    return {"lr": f"{lr:.9g}" if isinstance(lr, float) else ", ".join(f"{each:.9g}" for each in lr), **update.options}


def _batches(a: Journal, b: Journal) -> Iterator[Difference]:
    """What they are trained with. Where windows or batches have other sizes, the rows cannot be compared."""
    for one, other in zip(a.updates, b.updates, strict=False):
        if len(one.losses) != len(other.losses):
            counts = str(len(one.losses)), str(len(other.losses))
            yield Difference(HYPER, "window", one.at, "backward passes for an update", counts)
            return
        sizes = [[len(batch.rows) for batch in each.batches] for each in (one, other)]
        if sizes[0] != sizes[1]:
            yield Difference(HYPER, "window", one.at, "rows in a batch", (_listed(sizes[0]), _listed(sizes[1])))
            return
        rows = [[row for batch in each.batches for row in batch.rows] for each in (one, other)]
        if rows[0] != rows[1]:
            yield _rows(one, rows, a, b)
            return
        if [batch.content for batch in one.batches] != [batch.content for batch in other.batches]:
            elsewhere = {row for update in a.updates for batch in update.batches for row in batch.rows_hold}
            exchanged = {row for batch in other.batches for row in batch.rows_hold} <= elsewhere
            moved = exchanged and [each.rows_hold for each in one.batches] != [each.rows_hold for each in other.batches]
            if moved:
                yield Difference(ORDER, "rows", one.at, "which row is at which place")
            else:
                yield Difference(OTHER, "content", one.at, "what the same rows hold")
            return


def _rows(update: Update, rows: Sequence[Sequence[str | int]], a: Journal, b: Journal) -> Difference:
    """Whether the rows are the same in another order, or others."""
    all_a, all_b = (Counter(row for u in each.updates for batch in u.batches for row in batch.rows) for each in (a, b))
    common = sum((all_a & all_b).values())
    if common or isinstance(rows[0][0], int):
        return Difference(
            ORDER, "rows", update.at, "the order of the rows", (_listed(rows[0][:6]), _listed(rows[1][:6]))
        )
    return Difference(OTHER, "content", update.at, "the rows, of which none is among the other's,")


# What the runs compute


def parting(a: Journal, b: Journal, most: int) -> int | None:
    """The first of the first ``most`` updates that computes something else."""
    pairs = list(zip(a.updates, b.updates, strict=False))
    for number, (one, other) in enumerate(pairs[:most]):
        same = one.losses == other.losses and one.gradients == other.gradients
        same = same and not _apart(one, one.weights, other.weights)
        if number + 1 < len(pairs):
            following, others = pairs[number + 1]
            same = same and not _apart(one, following.weights, others.weights)
        elif a.end is not None and b.end is not None and len(a.updates) == len(b.updates):
            same = same and not _apart(one, a.end.weights, b.end.weights)
        if not same:
            return one.at
    return None


def _apart(update: Update, one: Digests, other: Digests) -> bool:
    """Whether trained tensors differ; buffers are those after the update's forward pass, whatever it is made from."""
    return any(name in update.gradients for name in differing(one, other))


def computed(one: Update, other: Update, a: Kept, b: Kept) -> tuple[list[Difference], list[str]]:
    """The differences in one update that its rows and weights do not explain, and what was found equal on the way."""
    update = one.at
    settings = list(_modules(update, a, b))
    if a["training"] != b["training"]:
        modes = str(a["training"]), str(b["training"])
        settings.append(Difference(OTHER, "model", update, "training mode", modes))
    if settings:
        return settings, []
    same_weights = _tensors(update, "model", "the weights", a["weights"], b["weights"]) is None
    same_rows = [each.content for each in one.batches] == [each.content for each in other.batches]
    with_given = None if b.get("given") is None else _forward(update, a["calls"], b["given"])
    if not (same_weights and same_rows):
        shares = " and ".join(["weights"] * (not same_weights) + ["rows"] * (not same_rows))
        equal = _equal(shares, with_given) if b.get("given") is not None else []
        return [with_given] if with_given is not None else [], equal
    inputs_a, inputs_b = (dict(tensors_in([each["args"], each["kwargs"]])) for each in (a, b))
    if fed := _tensors(update, "content", "what the model is given", inputs_a, inputs_b):
        equal = _equal("inputs", with_given) if b.get("given") is not None else []
        return [replace(fed, cause=OTHER, tensors=())], equal
    found = _forward(update, a["calls"], b["calls"])
    if found is None:
        return _after_forward(update, one, other, a, b), ["the forward pass: bit for bit"]
    drawn_otherwise = not torch.equal(a["random"], b["random"]) and b.get("given") is not None
    if drawn_otherwise and (equal := _equal("random numbers", with_given)):
        drawn = Difference(RANDOM, "random", update, f"the random numbers in {found.what}", (), (), found.size)
        return [drawn] if with_given is None else [drawn, with_given], equal
    return [found], []


def unexplained(given: Sequence[Difference], computed: Sequence[Difference]) -> list[Difference]:
    """Of what is computed otherwise, what does not follow from what is given.

    Another kernel explains what differs within rounding, and no more.
    """
    return [
        each
        for each in computed
        if not any(
            known.what == each.what
            or (
                known.update <= each.update
                and each.rung in EXPLAINS.get(known.rung, ())
                and (known.cause != KERNEL or each.cause == KERNEL)
            )
            for known in given
        )
    ]


def _equal(what: str, with_given: Difference | None) -> list[str]:
    """What the forward pass is with the same of something, where that is all that differs."""
    if with_given is None:
        return [f"the forward pass, with the same {what}: bit for bit"]
    if with_given.cause == KERNEL:
        return [f"the forward pass, with the same {what}: within rounding ({with_given.size:.1e})"]
    return []


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
            return Difference(OTHER, "forward", update, f"the shape of what {shown} gives", shapes)
        gaps = [gap(x, y) for x, y in zip(tensors, others, strict=True)]
        if worst := max((each for each in gaps if each.size), key=lambda each: each.size, default=None):
            cause = KERNEL if worst.size <= worst.rounding else OTHER
            return Difference(cause, "forward", update, f"what {shown} gives", (), (), worst.size, worst.rounding)
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
    if one.losses != other.losses and "losses" in a and "losses" in b:
        return [_numbers(update, "the loss", torch.stack(a["losses"]), torch.stack(b["losses"]))]
    steps: tuple[tuple[str, Rung, str], ...] = (
        ("gradients of backward", "gradients", "the gradients"),
        ("gradients", "gradients", "the gradients at the step"),
        ("after", "step", "the update"),
    )
    for key, rung, what in steps:
        found = _tensors(update, rung, what, a.get(key, {}), b.get(key, {}))
        if found is not None and key == "gradients":
            one_factor, other_factor = (_factor(each["gradients of backward"], each["gradients"]) for each in (a, b))
            if one_factor and other_factor:
                factors = f"times {one_factor:.4g}", f"times {other_factor:.4g}"
                return [Difference(HYPER, rung, update, "what becomes of the gradients before the step", factors)]
        if found is not None:
            return [found]
    return []


def _tensors(
    update: int, rung: Rung, what: str, a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor]
) -> Difference | None:
    gaps = {name: gap(a[name], b[name]) for name in a if name in b and a[name].shape == b[name].shape}
    others = [name for name, each in gaps.items() if each.size]
    if not others:
        return None
    worst = gaps[max(others, key=lambda name: gaps[name].size)]
    cause = KERNEL if worst.size <= worst.rounding else OTHER
    factor = _factor(a, b) if cause == OTHER else None
    multiple = "" if factor is None else f", B's being A's times {factor:.4g},"
    return Difference(cause, rung, update, what + multiple, (), tuple(others), worst.size, worst.rounding)


def _numbers(update: int, what: str, a: torch.Tensor, b: torch.Tensor) -> Difference:
    apart = gap(a, b)
    cause = KERNEL if apart.size <= apart.rounding else OTHER
    shown = (
        _listed([f"{value:.6g}" for value in a.flatten().tolist()]),
        _listed([f"{value:.6g}" for value in b.flatten().tolist()]),
    )
    return Difference(cause, "loss", update, what, shown, (), apart.size, apart.rounding)


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
