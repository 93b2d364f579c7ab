"""What differs between two runs: each thing once, where it differs first, with the class of its cause.

What a run is given (model, settings, rows) is compared in every update; what it computes (modules' outputs, loss,
gradients, the update) only in the first that differs, and only as far as that is not explained by what it was given.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch

from harness.compare.causes.computation import Computation
from harness.compare.causes.data_order import DataOrder
from harness.compare.causes.hyper_parameter import HyperParameter
from harness.compare.causes.initialisation import Initialisation
from harness.compare.causes.kernel_or_precision import KernelOrPrecision
from harness.compare.causes.random_state import RandomState
from harness.compare.gaps import clipping_between, factor_between, gap
from harness.compare.names import Modules, Names, class_of
from harness.digests import Digests, differing
from harness.findings import Report
from harness.starts.journal import Journal, Update
from harness.watch.run.batches import tensors_in

INITIAL, HYPER, ORDER = Initialisation.id, HyperParameter.id, DataOrder.id
RANDOM, KERNEL, OTHER = RandomState.id, KernelOrPrecision.id, Computation.id

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

Captured = Mapping[str, Any]
"""Tensors and settings of one update, as :class:`harness.compare.look.Look` keeps them."""

SHOWN = 60


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same on both sides."""

    cause: str
    """The id of its cause."""
    rung: Rung
    update: int
    """The first at which it shows, from 1."""
    what: str
    values: tuple[str, str] | tuple[()] = ()
    """Values of A and of B, where they can be said."""
    tensors: tuple[str, ...] = ()
    """The names of those that differ."""
    size: float | None = None
    """The largest difference, as a share of the largest number on side A; None also where a side is not finite."""
    rounding: float | None = None
    """What rounding alone may make of it, in the coarser of the two types."""
    explained_by: str | None = None
    """What else differs, in its own ``what``, from which this may follow; None where it stands alone."""

    def __post_init__(self) -> None:
        if self.size is not None and not math.isfinite(self.size):  # which JSON has no number for
            object.__setattr__(self, "size", None)


@dataclass
class CompareReport(Report):
    """Where two runs part."""

    kind: ClassVar[str] = "compare"
    a: str
    b: str
    updates: int = 0
    """Number of updates that were compared."""
    differences: list[Difference] = field(default_factory=list)
    """The first first."""
    equal: list[str] = field(default_factory=list)
    """What was found equal where it separates causes."""
    beside: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Versions and threads that differ, and need not matter."""
    notes: list[str] = field(default_factory=list)
    releases: dict[str, str] = field(default_factory=dict)
    """Release of a bisected library to what came of it, for each that was tried."""

    @property
    def differ(self) -> bool:
        return bool(self.differences)


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


def given(
    journals: tuple[Journal, Journal], kept: tuple[Captured, Captured], names: Names | None
) -> Iterator[Difference]:
    """The differences in model, settings and data; ``kept`` is of update 1, ``names`` as :func:`matched` has them."""
    a, b = journals
    yield from _models(*kept, names)
    yield from _trained(a, b)
    yield from _options(a, b)
    yield from _batches(a, b)


def _models(a: Captured, b: Captured, names: Names | None) -> Iterator[Difference]:
    yield from _modules(1, a, b, names)
    yield from _weights(a["weights"], b["weights"])
    for name, one in a["kernels"].items():
        if one != (other := b["kernels"].get(name, "none")):
            yield Difference(KERNEL, "model", 1, name, (one, other))


def _modules(update: int, a: Captured, b: Captured, names: Names | None) -> list[Difference]:
    """Modules that say something else of themselves, three at most. Another class, and a module that one side lacks,
    need not compute anything else: these only count where the tensors are others too."""
    modules = Modules.paired(a["modules"], b["modules"], names or {})
    beside = [(name, says, b["beside"].get(name, says)) for name, says in a["beside"].items()]
    others = [each for each in modules.pairs + beside if each[1] != each[2]]
    if names is None:
        others += modules.only
    else:
        others = [each for each in others if class_of(each[1]) == class_of(each[2])]
    return [_module(update, *each) for each in others][:3]


def _classes(a: Captured, b: Captured, names: Names | None) -> list[Difference]:
    """The innermost modules of another class, or that one side lacks: what may be why the forward pass is another."""
    modules = Modules.paired(a["modules"], b["modules"], names or {})
    others = [each for each in modules.pairs if class_of(each[1]) != class_of(each[2])] + modules.only
    return [_module(1, *each) for each in others if each[0] in modules.innermost][:3]


def _module(update: int, name: str, one: str, other: str) -> Difference:
    only_numbers = re.sub(NUMBER, "", one) == re.sub(NUMBER, "", other)
    sized = one.startswith(("Linear", "Embedding", "Conv"))  # what differs there is a shape
    cause = HYPER if only_numbers and not sized else OTHER
    return Difference(cause, "model", update, f"module {name or 'the model'}", (one, other))


def _weights(weights_a: Mapping[str, torch.Tensor], weights_b: Mapping[str, torch.Tensor]) -> Iterator[Difference]:
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


def _trained(a: Journal, b: Journal) -> Iterator[Difference]:
    """The first update that only one side lets change a tensor which then comes to differ."""
    for one, other in zip(a.updates, b.updates, strict=False):
        trained = [
            {name for name in each.trained if name in {*one.weights} & {*other.weights}} for each in (one, other)
        ]
        only = trained[0] ^ trained[1]
        if only and any(only & set(differing(*after)) for after in _weights_after(a, b, one.at)):
            counts = f"{len(trained[0])} tensors", f"{len(trained[1])} tensors"
            yield Difference(OTHER, "model", one.at, "what is trained", counts, tuple(sorted(only)))
            return


def _weights_after(a: Journal, b: Journal, update: int) -> Iterator[tuple[Digests, Digests]]:
    """The weights of both sides after that update, after the one that follows, and so on."""
    for following in range(update, min(len(a.updates), len(b.updates))):
        yield a.updates[following].weights, b.updates[following].weights
    if a.end is not None and b.end is not None and len(a.updates) == len(b.updates):
        yield a.end.weights, b.end.weights


def _options(a: Journal, b: Journal) -> Iterator[Difference]:
    told = set[str]()
    for one, other in zip(a.updates, b.updates, strict=False):
        settings = _settings_of(one), _settings_of(other)
        for name in {**settings[0], **settings[1]}:
            values = settings[0].get(name, "None"), settings[1].get(name, "None")  # which is what is not set
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
            yield _rows(one, other, rows, a, b)
            return
        if [batch.content for batch in one.batches] != [batch.content for batch in other.batches]:
            if _moved(a, b):
                yield Difference(ORDER, "rows", one.at, "the position of each row in the batches")
            else:
                yield _drawn(one, other, Difference(OTHER, "content", one.at, "the values of the same rows"))
            return


def _moved(a: Journal, b: Journal) -> bool:
    """Whether a row of B is another place's of A. What is at several places of one side says nothing."""
    places: list[dict[str, set[str | int]]] = []
    for journal in (a, b):
        found: dict[str, set[str | int]] = {}
        for batch in (each for update in journal.updates for each in update.batches):
            for row, holds in zip(batch.rows, batch.rows_hold, strict=False):
                found.setdefault(holds, set()).add(row)
        places.append(found)
    both = places[0].keys() & places[1].keys()
    return any(
        len(places[0][each]) == len(places[1][each]) == 1 and places[0][each] != places[1][each] for each in both
    )


def _drawn(one: Update, other: Update, found: Difference) -> Difference:
    """What is given, with random numbers for its cause where these were others before, and are drawn on both sides."""
    generators = [
        name
        for name, begun in one.begun.items()
        if begun != other.begun.get(name, begun)
        and begun != one.random.get(name)
        and other.begun[name] != other.random.get(name)
    ]
    if not generators:
        return found
    return replace(
        found, cause=RANDOM, what=f"{found.what}, with different random numbers of {' and '.join(generators)}"
    )


def _rows(one: Update, other: Update, rows: Sequence[Sequence[str | int]], a: Journal, b: Journal) -> Difference:
    """Whether the rows are the same in another order, or others."""
    all_a, all_b = (Counter(row for u in each.updates for batch in u.batches for row in batch.rows) for each in (a, b))
    common = sum((all_a & all_b).values())
    if common or isinstance(rows[0][0], int):
        seen = f" ({len(all_a)} rows are seen in A, {len(all_b)} in B)" if len(all_a) != len(all_b) else ""
        values = _listed(rows[0][:6]), _listed(rows[1][:6])
        return Difference(ORDER, "rows", one.at, f"the order of the rows{seen}", values)
    return _drawn(one, other, Difference(OTHER, "content", one.at, "the rows, of which the two runs share none"))


# What the runs compute


def parting(a: Journal, b: Journal, most: int) -> int | None:
    """The first of the first ``most`` updates that computes something else."""
    for one, other in list(zip(a.updates, b.updates, strict=False))[:most]:
        if (
            one.losses != other.losses
            or differing(one.gradients, other.gradients)
            or _apart(one, other, one.weights, other.weights)
            or afterwards(a, b, one.at)
        ):
            return one.at
    return None


def afterwards(a: Journal, b: Journal, update: int) -> list[str]:
    """The trained tensors that are not the same after an update."""
    one, other = a.updates[update - 1], b.updates[update - 1]
    after = next(_weights_after(a, b, update), None)
    return _apart(one, other, *after) if after is not None else []


def _apart(one: Update, other: Update, weights: Digests, others: Digests) -> list[str]:
    """Trained tensors that differ; buffers are those after the update's forward pass, whatever it is made from."""
    return [name for name in differing(weights, others) if name in one.gradients or name in other.gradients]


def computed(
    one: Update, other: Update, a: Captured, b: Captured, names: Names | None
) -> tuple[list[Difference], list[str]]:
    """The differences in one update that its rows and weights do not explain, and what was found equal on the way."""
    found, equal = _computed(one, other, a, b, names)
    if one.at == 1 and any((each.rung, each.cause) == ("forward", OTHER) for each in found):
        found = _classes(a, b, names) or found
    return found, equal


def _computed(
    one: Update, other: Update, a: Captured, b: Captured, names: Names | None
) -> tuple[list[Difference], list[str]]:
    update = one.at
    settings = _modules(update, a, b, names)
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
    if fed := _tensors(update, "content", "the inputs of the model", inputs_a, inputs_b):
        equal = _equal("inputs", with_given) if b.get("given") is not None else []
        return [_drawn(one, other, replace(fed, cause=OTHER, tensors=()))], equal
    found = _forward(update, a["calls"], b["calls"])
    if found is None:
        return _after_forward(update, one, other, a, b), ["the forward pass: bit for bit"]
    others = [name for name in a["drawn"] if name in b["drawn"] and a["random"][name] != b["random"][name]]
    named = _numbered(b.get("given") or [])
    covered = _forward(update, [each for each in a["calls"] if (each[0] or each[1], 0) in named], b["calls"])
    if others and covered == found and (equal := _equal("random numbers", with_given)):
        drawn = Difference(RANDOM, "random", update, f"the random numbers in {found.what}", (), (), found.size)
        return [drawn] if with_given is None else [drawn, with_given], equal
    return [found], []


def elsewhere(a: Journal, b: Journal, update: int) -> Difference:
    """What differs in an update, or after its step, of which nothing was seen in what was kept of it."""
    one, other = a.updates[update - 1], b.updates[update - 1]
    if one.losses != other.losses:
        return Difference(OTHER, "loss", update, "a loss")
    if names := differing(one.gradients, other.gradients):
        return Difference(OTHER, "gradients", update, "the gradients at the step", (), tuple(names))
    if names := _apart(one, other, one.weights, other.weights):
        return Difference(OTHER, "model", update, "the weights", (), tuple(names))
    what = "what changes the weights after the step"
    return Difference(OTHER, "step", update, what, (), tuple(afterwards(a, b, update)))


def with_causes(given: Sequence[Difference], computed: Sequence[Difference]) -> Iterator[Difference]:
    """What is computed otherwise, with what is given that it may follow from; without what was said of that already.

    Another kernel explains what differs within rounding, and no more.
    """
    told = {known.what for known in given}
    for difference in computed:
        causes = [
            known.what
            for known in given
            if known.update <= difference.update
            and difference.rung in EXPLAINS.get(known.rung, ())
            and (known.cause != KERNEL or difference.cause == KERNEL)
        ]
        if difference.what not in told:
            yield replace(difference, explained_by=next(iter(causes), None))


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
            return Difference(OTHER, "forward", update, f"the output shape of {shown}", shapes)
        gaps = [gap(x, y) for x, y in zip(tensors, others, strict=True)]
        if worst := max((each for each in gaps if each.size), key=lambda each: each.size, default=None):
            cause = KERNEL if worst.size <= worst.rounding else OTHER
            return Difference(cause, "forward", update, f"the output of {shown}", (), (), worst.size, worst.rounding)
    return None


def _numbered(calls: Sequence[Any]) -> dict[tuple[str, int], tuple[str, list[torch.Tensor]]]:
    """Calls by the module's name and how often it had been called before."""
    seen, found = Counter[str](), {}
    for name, module, tensors in calls:
        key = name or module
        found[key, seen[key]] = (module, tensors)
        seen[key] += 1
    return {(name, number): value for (name, number), value in found.items()}


def _after_forward(update: int, one: Update, other: Update, a: Captured, b: Captured) -> list[Difference]:
    """The loss, the gradients, what becomes of them before the step, the step: the first of them that differs."""
    if one.losses != other.losses and (untrained := differing(one.others, other.others)):
        cause = INITIAL if update == 1 else OTHER
        return [Difference(cause, "model", update, f"the weights of {untrained[0]}, which is not trained")]
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
            clipped = [clipping_between(each["gradients of backward"], each["gradients"]) for each in (a, b)]
            if clipped[0] and clipped[1]:
                what = "what changes the gradients before the step"
                return [Difference(HYPER, rung, update, what, (clipped[0], clipped[1]))]
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
    factor = factor_between(a, b) if cause == OTHER else None
    times = "" if factor is None else f"{factor:.4g}"
    multiple = " (same scale)" if times == "1" else f" (B's are A's times {times})" * bool(times)
    return Difference(cause, rung, update, what + multiple, (), tuple(others), worst.size, worst.rounding)


def _numbers(update: int, what: str, a: torch.Tensor, b: torch.Tensor) -> Difference:
    apart = gap(a, b)
    cause = KERNEL if apart.size <= apart.rounding else OTHER
    shown = (
        _listed([f"{value:.6g}" for value in a.flatten().tolist()]),
        _listed([f"{value:.6g}" for value in b.flatten().tolist()]),
    )
    return Difference(cause, "loss", update, what, shown, (), apart.size, apart.rounding)


# Sizes


def _shapes(tensors: Sequence[torch.Tensor]) -> str:
    return _listed([tuple(tensor.shape) for tensor in tensors])


def _count(tensors: Mapping[str, torch.Tensor]) -> str:
    return f"{len(tensors)}, {sum(tensor.numel() for tensor in tensors.values())} numbers"


def _listed(values: Sequence[Any]) -> str:
    text = re.sub(r"[\[\]']", "", str(list(values)))
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
