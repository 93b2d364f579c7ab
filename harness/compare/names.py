"""The same tensors and modules under other names: a model that is wrapped, whose layers or class were renamed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness.digests import Digests
from harness.starts.journal import Journal

Names = Mapping[str, str]
"""Names in B, and what is called so in A."""

TENSORS = ("weights", "gradients of backward", "gradients", "after")
"""What is kept of an update by the names of tensors."""


def matched(a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor]) -> dict[str, str] | None:
    """The name in ``a`` of each tensor of ``b``; None where they are not the same tensors.

    Those of one name are the same, and so are the others in their order; or all are in their order. The shapes must
    fit, and where they do in both ways, the way in which more weights are equal is taken.
    """
    if a.keys() == b.keys():
        return {name: name for name in b}
    if len(a) != len(b):
        return None
    only_a, only_b = [name for name in a if name not in b], [name for name in b if name not in a]
    common = {name: name for name in b if name in a}
    ways = [common | dict(zip(only_b, only_a, strict=True)), dict(zip(b, a, strict=True))]
    fitting = [way for way in ways if all(a[way[name]].shape == b[name].shape for name in b)]
    return max(fitting, key=lambda way: sum(torch.equal(a[way[name]].cpu(), b[name].cpu()) for name in b), default=None)


def of_modules(names: Names) -> dict[str, str]:
    """The modules that hold the tensors."""
    return {name.rpartition(".")[0]: named.rpartition(".")[0] for name, named in names.items()}


@dataclass(frozen=True)
class Modules:
    """What the modules of both models say of themselves, without those inside them."""

    pairs: list[tuple[str, str, str]]
    """Name in A, settings in A and settings in B of each module that both models have."""
    only: list[tuple[str, str, str]]
    """Name and settings of each module that one side alone has; the other side's are "none"."""
    innermost: frozenset[str]
    """Names of modules without modules inside them, of A, and of B where A has no counterpart."""

    @classmethod
    def paired(cls, a: Mapping[str, str], b: Mapping[str, str], names: Names) -> Modules:
        """Modules paired by the tensors they hold, then by name, then, in their order, the innermost ones where their
        classes agree."""
        mine = {named: name for name, named in of_modules(names).items() if named in a and name in b}
        mine |= {name: name for name in a if name in b and name not in mine and name not in mine.values()}
        rest_a, rest_b = [name for name in a if name not in mine], [name for name in b if name not in mine.values()]
        inner_a, inner_b = _innermost(rest_a, a), _innermost(rest_b, b)
        if [class_of(a[name]) for name in inner_a] == [class_of(b[name]) for name in inner_b]:
            mine |= dict(zip(inner_a, inner_b, strict=True))
        pairs = [(name, a[name], b[named]) for name, named in mine.items()]
        only_b = [name for name in b if name not in mine.values()]
        only = [(name, a[name], "none") for name in a if name not in mine] + [
            (name, "none", b[name]) for name in only_b
        ]
        return cls(pairs, only, frozenset(_innermost(list(a), a) + _innermost(only_b, b)))


def _innermost(names: list[str], modules: Mapping[str, str]) -> list[str]:
    return [name for name in names if name and not any(each.startswith(f"{name}.") for each in modules)]


def renamed(journal: Journal, names: Names) -> Journal:
    """Journal of B with A's names for its tensors."""

    def named(digests: Digests) -> Digests:
        return {names.get(name, name): each for name, each in digests.items()}

    updates = [
        replace(
            each,
            weights=named(each.weights),
            gradients=named(each.gradients),
            trained=tuple(names.get(name, name) for name in each.trained),
        )
        for each in journal.updates
    ]
    end = journal.end and replace(journal.end, weights=named(journal.end.weights))
    return replace(journal, updates=updates, end=end)


def renamed_kept(kept: Mapping[str, Any], names: Names, a: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors of B with A's names, and the class of A's model in the place of that of B's."""
    modules = of_modules(names)
    classes = {class_of(kept["modules"].get("", "")): class_of(a["modules"].get("", ""))}

    def calls(made: Any) -> Any:
        return made and [
            (modules.get(name, name), module if name else classes.get(module, module), tensors)
            for name, module, tensors in made
        ]

    found = {key: {names.get(name, name): each for name, each in kept.get(key, {}).items()} for key in TENSORS}
    return {**kept, **found, "calls": calls(kept.get("calls")), "given": calls(kept.get("given"))}


def class_of(says: str) -> str:
    """Class of a module, from its class and settings."""
    return says.partition("(")[0]
