"""Pairing: which model, optimizer and loader of a run is which of its baseline, whatever they are called by now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.describe.description import ORDER, Description
from harness.describe.lines import NAMES, SHAPES, pattern, patterns

MODEL, OPTIMIZER, LOADER = "model", "optimizer", "loader"

LOOP = re.compile(r"loop\d+")
NUMBER = re.compile(r"#\d+$")
ROLE = re.compile(r"(train|evaluation|read_for_something_else)(#\d+)?")

KIND_OF_SECTION = {
    "data": (LOADER, MODEL),
    "model": (MODEL,),
    "loaded": (MODEL, OPTIMIZER),
    "evaluation": (MODEL,),
    "optimizer": (OPTIMIZER,),
    "schedule": (OPTIMIZER,),
    "update": (OPTIMIZER,),
}
"""Section to the kinds of things whose names its facts have behind it."""

TENSORS = re.compile(
    r"\.(group_\d+\.names|in_none|without_gradient|frozen|unchanged|frozen_changed|changed_between|not_in_it|names)$"
)
"""Facts that list names of tensors."""

NORMS = ("gradient_norm", "gradient_norm_before_clipping")
"""Numbers that have the name of an optimizer."""


@dataclass(frozen=True)
class Pair:
    """A thing of the baseline and the one of the run that takes its place."""

    kind: str
    loop: str
    was: str
    now: str
    same_shapes: bool
    tensors: Mapping[str, str] = field(default_factory=dict)
    """Names of tensors, or their patterns, in the run to those in the baseline, where they have others."""

    @property
    def renamed(self) -> bool:
        """Whether its class is called otherwise."""
        return NUMBER.sub("", self.was) != NUMBER.sub("", self.now)

    @property
    def counts(self) -> bool:
        """Whether that is another behaviour: another model, or an optimizer of another class."""
        return self.renamed and (self.kind == OPTIMIZER or not self.same_shapes)

    def __str__(self) -> str:
        renamed = [f"{self.was} is now called {self.now}"] * self.renamed
        others = [(was, now) for now, was in self.tensors.items() if was != now]
        if others:
            was, now = others[0]
            more = f", and {len(others) - 1} more" if len(others) > 1 else ""
            of = "" if renamed else f"{self.was}: "
            renamed.append(f"{of}tensor {was} is now called {now}{more}")
        return "; ".join(renamed)


@dataclass(frozen=True)
class Pairs:
    """Which thing of a run is which of its baseline."""

    pairs: Sequence[Pair] = ()
    names: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    """Loop and kind to the names in the run, and what these are called in the baseline; of what is new, too."""

    @property
    def notes(self) -> list[str]:
        """What is called otherwise and is the same, one line each."""
        return [sentence for each in self.pairs if not each.counts and (sentence := str(each))]

    @property
    def counting(self) -> list[Pair]:
        """Those in which another class is another behaviour."""
        return [each for each in self.pairs if each.counts]

    def as_before(self, run: Description) -> Description:
        """A run with the names that its baseline has."""
        lines = [
            replace(each, facts={self.key(key): self.value(key, value) for key, value in each.facts.items()})
            for each in run.lines
        ]
        return replace(run, lines=lines, numbers={self.number(key): value for key, value in run.numbers.items()})

    def key(self, key: str) -> str:
        """The key of a fact, with the baseline's name of what it is about."""
        loop, parts = _loop_and_parts(key)
        for kind in KIND_OF_SECTION.get(parts[0], ()) if len(parts) > 1 else ():
            names = self.names.get((loop, kind), {})
            now = parts[1]
            if now not in names and parts[0] == "loaded":  # the second place at which a state is loaded into it
                now = NUMBER.sub("", now)
            if now in names:
                parts[1] = names[now] + parts[1][len(now) :]
                break
        return ".".join([*filter(None, [loop]), *parts])

    def value(self, key: str, value: Any) -> Any:
        """The value of a fact of the run, with the baseline's names of models and tensors."""
        loop, parts = _loop_and_parts(key)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            return value
        if parts[0] == "saved":
            models = self.names.get((loop, MODEL), {})
            classes = {NUMBER.sub("", now): NUMBER.sub("", was) for now, was in models.items()}
            return _saved(parts[-1], value, models, classes)
        if not TENSORS.search(key):
            return value
        found = [each.tensors for each in self.pairs if each.kind == MODEL and each.loop == loop and each.tensors]
        if parts[0] == MODEL:
            own = self.names.get((loop, MODEL), {}).get(parts[1])
            found = [
                each.tensors
                for each in self.pairs
                if (each.kind, each.loop, each.was) == (MODEL, loop, own) and each.tensors
            ]
        called = _together(found)
        if parts[0] == MODEL and parts[-1] == NAMES:
            return [called.get(each, each) for each in value]
        return _called(value, called) if called else value

    def number(self, key: str) -> str:
        """The key of a number, with the baseline's name of its optimizer."""
        kind, dot, name = key.partition(".")
        return f"{kind}.{self.names.get(('', OPTIMIZER), {}).get(name, name)}" if dot and kind in NORMS else key

    def turned(self) -> Pairs:
        """The same from the baseline to the run."""
        pairs = [
            replace(each, was=each.now, now=each.was, tensors={was: now for now, was in each.tensors.items()})
            for each in self.pairs
        ]
        names = {of: {was: now for now, was in named.items()} for of, named in self.names.items()}
        return Pairs(pairs, names)

    def in_text(self, text: str) -> str:
        """A line of the page, with the baseline's names of models and optimizers."""
        names = {now: was for (_, kind), named in self.names.items() for now, was in named.items() if kind != LOADER}
        names = {now: was for now, was in names.items() if now != was}
        if not names:
            return text
        longest_first = sorted(map(re.escape, names), key=len, reverse=True)
        return re.sub(rf"(?<![\w.])(?:{'|'.join(longest_first)})(?![\w#])", lambda found: names[found[0]], text)


def pairs(stored: Mapping[str, Any], now: Mapping[str, Any]) -> Pairs:
    """Pair models, optimizers and loaders by what they hold, then by their order, and not by their names.

    Models and optimizers are held together by the sequence of their tensors' shapes, loaders by rows and batches. What
    has no counterpart of its shapes takes the place of what is left of its name, else of what is left. Baselines from
    before shapes were kept are paired by the number of parameters.
    """
    found: list[Pair] = []
    names: dict[tuple[str, str], dict[str, str]] = {}
    for loop in dict.fromkeys(_loop_and_parts(key)[0] for key in (*stored, *now)):
        for kind in (MODEL, OPTIMIZER, LOADER):
            were, are = _things(stored, loop, kind), _things(now, loop, kind)
            if not all(SHAPES in each for each in (*were.values(), *are.values())):
                were, are = ({name: _without_shapes(of) for name, of in each.items()} for each in (were, are))
            paired = {now: was for was, now in _paired(were, are)}
            free = (name for name in are if name not in paired)
            taken = {*were}
            for name in free:  # new; its name may be that of another thing in the baseline
                paired[name] = next(each for each in _numbered(name) if each not in taken)
                taken.add(paired[name])
            names[loop, kind] = paired
            for one, was in paired.items():
                if was in were:
                    same = _signature(were[was]) == _signature(are[one])
                    tensors = _tensors(were[was], are[one]) if kind == MODEL and same else {}
                    found.append(Pair(kind, loop, was, one, same, tensors))
    return Pairs(found, names)


def _loop_and_parts(key: str) -> tuple[str, list[str]]:
    parts = key.split(".")
    several = LOOP.fullmatch(parts[0]) and len(parts) > 1 and parts[1] in ORDER
    return (parts[0], parts[1:]) if several else ("", parts)


def _things(facts: Mapping[str, Any], loop: str, kind: str) -> dict[str, dict[str, Any]]:
    """The things of a kind in the order of a page, with the facts that tell one from another."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in facts.items():
        of, parts = _loop_and_parts(key)
        if of != loop or len(parts) < 3:
            continue
        section, name, *rest = parts
        last = ".".join(rest)
        of_model = section == "model" and last in ("parameters", SHAPES, NAMES)
        of_optimizer = section == "optimizer" and (last == SHAPES or last.endswith(".elements"))
        of_loader = section == "data" and last in ("rows", "batch_size") and ROLE.fullmatch(name)
        if {MODEL: of_model, OPTIMIZER: of_optimizer, LOADER: of_loader}[kind]:
            new = {"role": NUMBER.sub("", name), SHAPES: None} if kind == LOADER else {}
            found.setdefault(name, new)[last] = value
    return found


def _without_shapes(of: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in of.items() if key not in (SHAPES, NAMES)}


def _signature(of: Mapping[str, Any]) -> tuple[Any, ...]:
    """What is the same in things that are the same."""
    if of.get(SHAPES) is not None:
        return (str(of[SHAPES]),)
    return tuple(sorted((key, str(value)) for key, value in of.items() if key != NAMES))


def _paired(were: Mapping[str, Mapping[str, Any]], are: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Names in the baseline, and those in the run."""
    left_were, left_are = list(were), list(are)

    def taken(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for was, now in list(pairs):
            left_were.remove(was)
            left_are.remove(now)
            yield was, now

    for signature in dict.fromkeys(_signature(of) for of in were.values()):
        ours = [name for name in were if _signature(were[name]) == signature]
        theirs = [name for name in are if _signature(are[name]) == signature]
        if len(ours) != len(theirs):  # one of them is new or gone: most likely not the one of the same name
            same = [name for name in ours if name in theirs]
            yield from taken((name, name) for name in same)
            ours, theirs = ([each for each in of if each not in same] for of in (ours, theirs))
        yield from taken(zip(ours, theirs, strict=False))
    yield from taken((name, name) for name in left_were if name in left_are)
    for role in dict.fromkeys(were[name].get("role") for name in left_were):
        alike = [[n for n in left if of[n].get("role") == role] for left, of in ((left_were, were), (left_are, are))]
        yield from taken(zip(*alike, strict=False))


def _numbered(name: str) -> Iterator[str]:
    base = NUMBER.sub("", name)
    yield name
    yield from (f"{base}#{number}" for number in range(2, 1_000_000))


def _tensors(was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """Names of tensors in the run to those in the baseline; nothing where they are the same, or cannot be paired."""
    ours, theirs = was.get(NAMES), now.get(NAMES)
    if not isinstance(ours, list) or not isinstance(theirs, list) or len(ours) != len(theirs):
        return {}
    if set(ours) == set(theirs):
        return {}
    return dict(zip(theirs, ours, strict=True))


def _together(of_models: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The tensors of several models, but for those of one name that they call otherwise."""
    found: dict[str, str] = {}
    for now in dict.fromkeys(each for tensors in of_models for each in tensors):
        called = {tensors[now] for tensors in of_models if now in tensors}
        found[now] = called.pop() if len(called) == 1 else now
    return found


def _called(value: Iterable[str], tensors: Mapping[str, str]) -> list[str]:
    """A list of tensors, or of their patterns, as the baseline would have it."""
    found: set[str] = set()
    for item in value:
        if item in tensors:
            found.add(tensors[item])
        elif "*" in item:
            found |= {was for now, was in tensors.items() if pattern(now) == item} or {item}
        else:
            found.add(_by_pattern(item, tensors) or item)
    return patterns(found)


def _by_pattern(name: str, tensors: Mapping[str, str]) -> str | None:
    """A tensor of a model whose names are kept as patterns: layer.3.weight of layer.*.weight."""
    now = pattern(name)
    was = tensors.get(now)
    if was is None or was.count("*") != now.count("*"):
        return None
    numbers = iter(one for one, other in zip(name.split("."), now.split("."), strict=True) if other == "*")
    return ".".join(next(numbers) if part == "*" else part for part in was.split("."))


def _saved(last: str, value: list[str], models: Mapping[str, str], classes: Mapping[str, str]) -> list[str]:
    """Whose weights were saved, or what: "Net, the module itself", "Net by save_pretrained"."""
    if last == "weights_of":
        return [models.get(each, each) for each in value]
    if last != "what":
        return value
    called = [re.match(r"(\w+)(, the module itself| by save_pretrained)$", each) for each in value]
    pairs = zip(value, called, strict=True)
    return sorted(classes.get(found[1], found[1]) + found[2] if found else each for each, found in pairs)
