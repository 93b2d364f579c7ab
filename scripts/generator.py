"""A paraphrase corpus of MRPC's shape, generated from a seed: what the recipe ``tiny`` trains on.

Every row is two news-like sentences made from one *story*: a list of clauses, each with its facts (who, whom, how
much, where, which day). A story is told twice with other words, another voice and another order; where the label is
``not_equivalent``, one or two facts of the second telling were changed, or two of them exchanged. The kind of fact, its
new value and the wording are drawn independently of the label, so neither sentence alone, nor its length, tells it.

Only ``random.Random.random`` is used, whose sequence for a seed is promised by Python's documentation to stay.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

T = TypeVar("T")

POSITIVE_SHARE = 0.675  # MRPC: 2474 of 3668 in training

_HEADS = "tar bel cor dan el fen gal hol kel lum mor nor or pel quin ros sol tel ul ver win yar zen".split()
_ORG_TAILS = "vex mont dale tron ix ara eco gate lin mar nova star well".split()
_PERSON_TAILS = "son sen berg man ski ez ley ton".split()

# A fact's possible values by kind; a value is the list of phrases that mean the same.
_VALUES: dict[str, list[list[str]]] = {
    "org": [[f"{head}{tail}".capitalize()] for head in _HEADS for tail in _ORG_TAILS],
    "person": [[f"{head}{tail}".capitalize()] for head in _HEADS for tail in _PERSON_TAILS],
    "place": [[name] for name in (
        "Athens Berlin Boston Cairo Chicago Dallas Denver Dublin Geneva Houston Kabul Lagos Lima Lisbon London "
        "Madrid Manila Miami Milan Moscow Nairobi Oslo Paris Prague Rome Seoul Tokyo Toronto Vienna Warsaw"
    ).split()],
    "day": [[day] for day in "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()],
    "number": [[str(n)] for n in range(2, 60)],
    "trade": [["bought", "acquired", "purchased"], ["sold", "divested", "unloaded"]],
    "move": [["rose", "climbed", "gained", "advanced"], ["fell", "dropped", "slipped", "declined"]],
    "ruling": [
        ["approved", "backed", "endorsed", "passed"],
        ["rejected", "opposed", "blocked"],
        ["delayed", "postponed", "deferred"],
        ["reviewed", "examined", "studied"],
    ],
    "matter": [
        ["plan", "proposal"], ["lawsuit", "suit"], ["budget", "spending bill"], ["merger", "tie-up"],
        ["deal", "agreement", "accord"], ["law", "legislation"], ["appeal", "petition"], ["tax", "levy"],
    ],
    "body": [
        ["Senate", "upper house"], ["court", "judge"], ["union", "workers"], ["board", "directors"],
        ["cabinet", "ministers"], ["council", "city leaders"], ["agency", "regulators"],
    ],
    "harm": [["killed"], ["injured", "wounded", "hurt"], ["trapped", "stranded"], ["displaced", "uprooted"]],
    "disaster": [
        ["blast", "explosion"], ["fire", "blaze"], ["crash", "collision"], ["flood", "deluge"],
        ["storm", "gale"], ["attack", "assault"], ["quake", "tremor"],
    ],
    "staffing": [["cut", "eliminated", "shed"], ["added", "created"], ["moved", "relocated"]],
    "hiring": [["named", "appointed", "hired"], ["dismissed", "fired", "ousted"]],
    "role": [
        ["chief executive", "top executive"], ["chairman", "head of the board"], ["finance chief", "treasurer"],
        ["spokesman", "press officer"], ["lawyer", "attorney"], ["adviser", "consultant"],
    ],
    "measure": [["profit", "earnings"], ["sales", "revenue"], ["output", "production"], ["costs", "expenses"]],
    "stance": [["expects", "forecasts", "predicts"], ["reported", "posted", "announced"]],
    "journey": [["arrived in", "reached", "landed in"], ["left", "departed", "flew out of"]],
}  # fmt: skip

# Each clause: the facts by slot name and kind, then the ways to say it.
_CLAUSES: list[tuple[dict[str, str], list[str]]] = [
    (
        {"a": "org", "v": "trade", "b": "org", "n": "number"},
        ["{a} {v} {b} for $ {n} million", "{b} was {v} by {a} for $ {n} million", "for $ {n} million , {a} {v} {b}"],
    ),
    (
        {"a": "org", "v": "move", "n": "number", "m": "number"},
        [
            "shares of {a} {v} {n} percent to $ {m}",
            "{a} stock {v} to $ {m} , or {n} percent",
            "{a} shares {v} by {n} percent and closed at $ {m}",
        ],
    ),
    (
        {"b": "body", "v": "ruling", "o": "matter", "p": "place"},
        [
            "the {b} in {p} {v} the {o}",
            "the {o} was {v} by the {b} in {p}",
            "in {p} , the {b} {v} a {o}",
        ],
    ),
    (
        {"n": "number", "v": "harm", "e": "disaster", "p": "place"},
        [
            "{n} people were {v} in a {e} in {p}",
            "a {e} in {p} {v} {n} people",
            "the {e} that hit {p} {v} at least {n}",
        ],
    ),
    (
        {"a": "org", "v": "staffing", "n": "number", "p": "place"},
        ["{a} {v} {n} jobs in {p}", "{n} jobs were {v} by {a} in {p}", "{a} {v} {n} positions at its {p} plant"],
    ),
    (
        {"a": "org", "v": "hiring", "x": "person", "r": "role"},
        ["{a} {v} {x} as {r}", "{x} was {v} as {r} of {a}", "{r} {x} was {v} by {a}"],
    ),
    (
        {"a": "org", "s": "stance", "q": "measure", "n": "number"},
        [
            "{a} {s} {q} of $ {n} million",
            "{a} {s} $ {n} million in {q}",
            "{q} of $ {n} million is what {a} {s}",
        ],
    ),
    (
        {"x": "person", "v": "journey", "p": "place", "y": "person"},
        ["{x} {v} {p} with {y}", "{x} , with {y} , {v} {p}", "with {y} , {x} {v} {p}"],
    ),
]

_SPEAKERS = ["officials said", "a spokesman said", "the company said", "analysts said", "sources said", "police said"]
_FILLERS = ["already", "also", "reportedly", "again", "later", "finally"]

Words = list[tuple[str, "Fact | None"]]
"""A telling, word by word; each word with the fact that it states, if any."""


@dataclass(frozen=True)
class Fact:
    """One slot of one clause with its value, given as the index into the values of its kind."""

    clause: int
    slot: str
    kind: str
    value: int


@dataclass(frozen=True)
class Story:
    """What both sentences of a row are about."""

    patterns: tuple[int, ...]
    facts: tuple[Fact, ...]

    def differs_from(self, other: Story) -> set[Fact]:
        return set(self.facts) - set(other.facts)


@dataclass(frozen=True)
class Row:
    """One row in MRPC's columns, and the second telling word by word (the pretraining's targets)."""

    sentence1: str
    sentence2: str
    label: int
    contradicted: tuple[bool, ...]
    """For each blank-separated word of sentence2: does it state a fact that differs from sentence1's?"""
    topic: int
    """Which kind of clause the story begins with: that of the only clause, where stories have no more."""


class Draw:
    """The few kinds of draw that the generator needs, all from ``random()``."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, n: int) -> int:
        return int(self._random() * n)

    def one_of(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def shuffled(self, items: Sequence[T]) -> list[T]:
        return [item for _, item in sorted(((self._random(), i), item) for i, item in enumerate(items))]


def _story(draw: Draw, most_clauses: int) -> Story:
    roll = draw.below(100)
    length = 1 if roll < 15 else 2 if roll < 72 else 3
    patterns = tuple(draw.shuffled(range(len(_CLAUSES)))[: min(length, most_clauses)])
    facts: list[Fact] = []
    for clause, pattern in enumerate(patterns):
        for slot, kind in _CLAUSES[pattern][0].items():
            taken = {fact.value for fact in facts if fact.kind == kind}
            free = [value for value in range(len(_VALUES[kind])) if value not in taken]
            facts.append(Fact(clause, slot, kind, draw.one_of(free)))
        if draw.chance(0.4):
            facts.append(Fact(clause, "day", "day", draw.below(len(_VALUES["day"]))))
    return Story(patterns, tuple(facts))


def _contradict(draw: Draw, story: Story) -> Story:
    """The same story with one or two facts changed, or two facts of one kind exchanged."""
    facts = list(story.facts)
    exchangeable = [
        (i, j) for i, a in enumerate(facts) for j, b in enumerate(facts[:i]) if a.kind == b.kind and a.value != b.value
    ]
    if exchangeable and draw.chance(0.15):
        i, j = draw.one_of(exchangeable)
        facts[i], facts[j] = replace(facts[i], value=facts[j].value), replace(facts[j], value=facts[i].value)
    else:
        for i in draw.shuffled(range(len(facts)))[: 1 + draw.below(3)]:
            taken = {fact.value for fact in facts if fact.kind == facts[i].kind}
            free = [value for value in range(len(_VALUES[facts[i].kind])) if value not in taken]
            facts[i] = replace(facts[i], value=draw.one_of(free))
    return replace(story, facts=tuple(facts))


def _clause(draw: Draw, story: Story, clause: int) -> Words:
    facts = {fact.slot: fact for fact in story.facts if fact.clause == clause}
    words: Words = []
    for word in draw.one_of(_CLAUSES[story.patterns[clause]][1]).split():
        if word.startswith("{"):
            fact = facts[word.strip("{}")]
            if fact.slot == "v" and draw.chance(0.1):
                words.append((draw.one_of(_FILLERS), None))
            phrase = draw.one_of(_VALUES[fact.kind][fact.value])
            words += [(part, fact) for part in phrase.split()]
        else:
            words.append((word, None))
    words = [
        ("an" if word == "a" and words[i + 1][0][0] in "aeiou" else word, fact) for i, (word, fact) in enumerate(words)
    ]
    if day := facts.get("day"):
        name = (_VALUES["day"][day.value][0], day)
        words = [("on", None), name, (",", None), *words] if draw.chance(0.4) else [*words, ("on", None), name]
    return words


def _tell(draw: Draw, story: Story) -> Words:
    clauses = [_clause(draw, story, clause) for clause in draw.shuffled(range(len(story.patterns)))]
    words = clauses[0]
    for clause in clauses[1:]:
        words = [*words, *((word, None) for word in draw.one_of([", and", ", while", ", as", ";"]).split()), *clause]
    if draw.chance(0.35):
        speaker: Words = [(word, None) for word in draw.one_of(_SPEAKERS).split()]
        words = [*speaker, ("that", None), *words] if draw.chance(0.5) else [*words, (",", None), *speaker]
    return [*words, (".", None)]


def _text(words: Words) -> str:
    text = " ".join(word for word, _ in words)
    return text[0].upper() + text[1:]


def vocabulary() -> list[str]:
    """The WordPiece vocabulary of everything that the generator can say, in a fixed order, special tokens first.

    Names are split into a head and a ``##tail``; single characters stand in for words from elsewhere.
    """
    lexicon: set[str] = set()
    phrases = [
        phrase for kind, values in _VALUES.items() if kind not in ("org", "person") for v in values for phrase in v
    ]
    templates = [template for _, templates in _CLAUSES for template in templates]
    for phrase in [*phrases, *templates, *_SPEAKERS, *_FILLERS, "an and while as that on"]:
        lexicon.update(word.lower() for word in phrase.replace("-", " - ").split() if not word.startswith("{"))
    characters = [chr(code) for code in range(ord("!"), ord("~") + 1) if not chr(code).isupper()]
    pieces = [f"##{piece}" for piece in (*_ORG_TAILS, *_PERSON_TAILS, *characters)]
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({*lexicon, *_HEADS, *characters}), *pieces]


def rows(seed: int, *, positive_share: float = POSITIVE_SHARE, most_clauses: int = 3) -> Iterator[Row]:
    """Rows without end; the same arguments give the same rows."""
    draw = Draw(seed)
    while True:
        story = _story(draw, most_clauses)
        first = _tell(draw, story)
        label = int(draw.chance(positive_share))
        other = story if label else _contradict(draw, story)
        second = _tell(draw, other)
        changed = other.differs_from(story)
        contradicted = tuple(fact in changed for _, fact in second)
        yield Row(_text(first), _text(second), label, contradicted, story.patterns[0])


def three_way_rows(seed: int) -> Iterator[Row]:
    """Rows of three labels without end: 0 two stories, 1 one and its contradiction, 2 one that is told twice."""
    stream, draw = rows(seed, positive_share=0.5), Draw(seed + 1)
    while True:
        row = next(stream)
        if draw.chance(1 / 3):
            other = next(stream)
            yield replace(row, sentence2=other.sentence2, label=0, contradicted=(True,) * len(other.contradicted))
        else:
            yield replace(row, label=1 + row.label)


def topic_rows(seed: int) -> Iterator[Row]:
    """Rows of one clause without end, labelled with its kind; only their first sentence is meant to be read."""
    return (replace(row, label=row.topic) for row in rows(seed, most_clauses=1))
