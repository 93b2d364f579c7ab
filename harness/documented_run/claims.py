"""What the documents claim: Claim, the documents' sections, and the recipes that a claim is about.

The documents are Hugging Face's course, chapter 3, as five readers kept it: "Processing the data" and "Fine-tuning a
model with the Trainer API" (001), "A full training" (000 to 004). What they claim is the table
harness/documented_run/assets/claims.toml; the checks in harness/documented_run/stages name its entries.

Each claim cites: a few words of every document that it names, in that document's language, and the section in which
they are. ``harness claims --documents FOLDER`` looks them up.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness.documented_run.recipe import Recipe

DOCUMENTED = Recipe()

ALL = ("000", "001", "002", "003", "004")

_TABLE = tomllib.loads((Path(__file__).parent / "assets" / "claims.toml").read_text(encoding="utf-8"))

TITLES: dict[str, str] = {name: section["title"] for name, section in _TABLE["sections"].items()}
"""The titles of the documents' sections, as claims cite them."""

PARTS: dict[str, dict[str, tuple[str, str]]] = {
    section["title"]: {document: (begins, ends) for document, (begins, ends) in section["parts"].items()}
    for section in _TABLE["sections"].values()
}
"""Where each reader kept a section of the course: how the line begins that begins it, and the first one after it (""
for the end of the document)."""


@dataclass(frozen=True)
class Citation:
    """Where a document says something: a few of its own words, "…" for what is left out between them."""

    document: str
    section: str
    words: str


@dataclass(frozen=True)
class Claim:
    """One sentence or printed output of a document.

    It is *exact* where every correct run shows it, and *ball park* where the document itself says that results vary.
    """

    id: str
    sentence: str
    documents: tuple[str, ...]
    section: str
    expected: Any = None
    """The documented value that the check compares with, where it compares with one."""
    kind: Literal["exact", "ball park"] = "exact"
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """The recipe fields that the claim depends on, with the values for which it applies; for any other value it is
    reported as not applicable, never as passed."""
    words: str | Mapping[str, str] = ""
    """A few words of the section that say it: code or printed output that all the documents share, or by document."""
    besides: tuple[Citation, ...] = ()
    """Where it is said in another section or document too."""
    derived: str = ""
    """What of it no document says, and what it follows from or whose it is."""

    @property
    def citations(self) -> Iterator[Citation]:
        """One for each document of the claim, then those in other places."""
        for document in self.documents:
            words = self.words if isinstance(self.words, str) else self.words.get(document, "")
            yield Citation(document, self.section, words)
        yield from self.besides

    def not_applicable(self, recipe: Recipe) -> str | None:
        """Why this claim says nothing about the recipe; None where it does."""
        for name, allowed in self.only.items():
            found = getattr(recipe, name)
            if found not in allowed:
                return f"about {name} {' or '.join(map(str, allowed))}; this recipe has {found}"
        return None


@dataclass(frozen=True)
class WithoutClaim:
    """Why no claim is for a passage of the documents."""

    why: str
    words: tuple[str, ...]
    """Some words of each passage, "…" for what is left out."""
    documents: tuple[str, ...] = ALL
    kind: Literal["sentence", "code", "comment", "output"] | None = None
    """What the passages are; None for any."""


@dataclass(frozen=True)
class LookedUp:
    """A claim's citation, and the line of the document in which its words begin: from 1, None where they are not."""

    claim: str
    citation: Citation
    line: int | None


@dataclass(frozen=True)
class Invariant:
    """What must hold for a reason of our own."""

    id: str
    sentence: str


def claim(name: str) -> Claim:
    """The claim with that id."""
    told = dict(_TABLE["claims"][name])
    section = TITLES[told.pop("section")]
    documents = tuple(told.pop("documents", ALL))
    only = {key: _allowed(key, values) for key, values in told.pop("only", {}).items()}
    besides = tuple(Citation(document, TITLES[key], words) for document, key, words in told.pop("besides", ()))
    return Claim(name, documents=documents, section=section, only=only, besides=besides, **told)


def _allowed(name: str, values: Any) -> tuple[Any, ...]:
    return (getattr(DOCUMENTED, name),) if values == "documented" else tuple(values)


BALL_PARK = 0.06
"""How far from the documented figures is still their ball park: 2.5 standard deviations of five published MRPC seeds of
bert-base-uncased (transformers issue 346: accuracy 0.792 to 0.846, standard deviation 0.025)."""

RESULT, TRAINER_RESULT = claim("ball-park"), claim("trainer-ball-park")

TRANSLATED = {"002": "the translation of what stands above it"}
"""Documents in which each paragraph is followed by its translation into Chinese."""

WITHOUT_CLAIM = tuple(
    WithoutClaim(each["why"], tuple(each["words"]), tuple(each.get("documents", ALL)), each.get("kind"))
    for each in _TABLE["without-claim"]
)
"""Passages of the documents that nothing is checked of, and why. The first entry that fits counts."""
