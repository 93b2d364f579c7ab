"""Which tokens of which rows carry a loss, as the run really gives them to the model: ``harness tokens`` and
:func:`harness.watch.taught`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import ClassVar, Literal

import torch

from harness.errors import CannotTry
from harness.findings import Isolation, Report
from harness.watch.bus import OutcomeListener
from harness.watch.events import BackwardBegins, Forward
from harness.watch.facts.chat_templates import ChatTemplates
from harness.watch.facts.labels_given import LabelsGiven, real_tokens
from harness.watch.facts.next_tokens import NextTokens
from harness.watch.instrument import instrumented
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options
from harness.watch.running import as_main, readable_script, room_on_the_stack, run_as_main
from harness.watch.session import Session

State = Literal["taught", "not taught", "padding"]

ROWS, UPDATES = 4, 2
"""Rows that are shown, and updates after which a script is ended, unless told otherwise."""

LAST = 3
"""Tokens at the end of a row of which one is special where the row ends: a template may write a new line after it."""


@dataclass(frozen=True)
class Span:
    """Tokens of a row that follow one another and are alike."""

    text: str
    """Decoded, special tokens as they are written; the ids where there is no tokenizer."""
    tokens: int
    state: State
    role: str | None = None
    """Whose turn it is, where the chat template tells it."""
    document: int = 1
    """Number of its document in a packed row, counted from 1."""


@dataclass(frozen=True)
class Row:
    """One row of a batch, as the model was given it."""

    update: int
    spans: list[Span]

    @property
    def taught(self) -> str:
        """The text that carries a loss."""
        return "".join(span.text for span in self.spans if span.state == "taught")


@dataclass
class TaughtReport(Report):
    """What was taught in the updates that were looked at."""

    kind: ClassVar[str] = "tokens"
    script: str
    updates: int = 0
    rows: list[Row] = field(default_factory=list)
    """The first ones."""
    rows_seen: int = 0
    tokens: int = 0
    padding: int = 0
    taught: int = 0
    without_label: int = 0
    """Rows of which no token carries a loss."""
    filled: int = 0
    """Rows of a batch of rows of several lengths that fill its whole width without an end: they may be cut."""
    never_taught: list[str] = field(default_factory=list)
    """Special tokens of the texts that never carry a loss."""
    notes: list[str] = field(default_factory=list)
    crashed: str | None = None
    isolation: Isolation | None = None
    """What became of the user's files; None where whoever runs the script sees to them."""


class _Teaching(OutcomeListener):
    """Looks at what the backward passes of one loop teach."""

    id = "tokens::taught"

    def __init__(self, monitor: Monitor, report: TaughtReport, rows: int) -> None:
        self.monitor, self._report, self._most = monitor, report, rows
        self._next, self._given = monitor.fact(NextTokens), monitor.fact(LabelsGiven)
        self._template = monitor.fact(ChatTemplates)
        self._special: Counter[int] = Counter()
        self._special_taught: set[int] = set()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        report = self._report
        report.updates = max(report.updates, self.monitor.update)
        self._template.look_around()
        by_loss = {taught.forward.number: taught for taught in self._next.taught if taught.time and taught.ahead}
        labelled = {each.forward.number: each for each in self._given.labelled}
        for forward in (each for each in event.forwards if each.gradients):
            if given := labelled.get(forward.number):
                real = given.real if given.decoder else self._real(forward, given.tokens, given.counted)
                self._see(forward, given.tokens, given.counted, real)
            elif taught := by_loss.get(forward.number):
                real = self._real(forward, taught.tokens, taught.is_target)
                self._see(forward, taught.tokens, taught.is_target, real)
            elif forward.tensors.get("input_ids") is not None:
                name = type(forward.model).__name__
                self.monitor.note(f"it is unknown which tokens the loss of {name} counts: the model got no labels")

    def _real(self, forward: Forward, tokens: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
        """Mask in the shape of ``tokens``: what is no padding. Without a mask, padding is the pad tokens at either end
        without a loss."""
        pad = getattr(self._template.tokenizer, "pad_token_id", None)
        mask = forward.tensors.get("attention_mask")
        if pad is None or (mask is not None and mask.shape == tokens.shape):
            return real_tokens(forward, tokens)
        pads = (tokens == pad).long()
        ahead, behind = pads.cumprod(1).bool(), pads.flip(1).cumprod(1).flip(1).bool()
        if pad == getattr(self._template.tokenizer, "eos_token_id", None):  # the first of them ends the text
            behind = behind & (tokens.roll(1, dims=1) == pad)
        real: torch.Tensor = ~((ahead | behind) & ~counted)
        return real

    def _see(self, forward: Forward, tokens: torch.Tensor, counted: torch.Tensor, real: torch.Tensor) -> None:
        report = self._report
        counted = counted & real if not torch.equal(counted & real, counted) else counted
        report.rows_seen += len(tokens)
        report.tokens += tokens.numel()
        report.padding += int((~real).sum())
        report.taught += int(counted.sum())
        report.without_label += int((~counted.any(1)).sum())
        lengths = real.sum(1)
        if len(tokens) > 1 and int(lengths.min()) < tokens.shape[1]:
            special = torch.tensor(getattr(self._template.tokenizer, "all_special_ids", ()), device=tokens.device)
            ends = torch.isin(tokens[:, -LAST:], special.to(tokens)).any(1)
            report.filled += int(((lengths == tokens.shape[1]) & ~ends).sum())
        self._count_special(tokens, counted, real)
        documents = _documents(forward, tokens, real)
        for row in range(len(tokens)):
            if len(report.rows) < self._most:
                given = (each[row].tolist() for each in (tokens, counted, real, documents))
                report.rows.append(Row(self.monitor.update, list(self._spans(*given))))

    def _count_special(self, tokens: torch.Tensor, counted: torch.Tensor, real: torch.Tensor) -> None:
        for token in getattr(self._template.tokenizer, "all_special_ids", ()):
            is_it = (tokens == token) & real
            is_it[:, 0] = False  # the first token of a row is never the target of a place
            if is_it.any():
                self._special[token] += int(is_it.sum())
                if bool((is_it & counted).any()):
                    self._special_taught.add(token)
        never = [token for token in self._special if token not in self._special_taught]
        self._report.never_taught = [self._decoded([token]) for token in never]

    def _spans(self, tokens: list[int], counted: list[bool], real: list[bool], documents: list[int]) -> Iterator[Span]:
        roles = [role if is_real else None for role, is_real in zip(self._roles_of(tokens), real, strict=True)]
        states: list[State] = [
            "taught" if counts else "not taught" if is_real else "padding"
            for counts, is_real in zip(counted, real, strict=True)
        ]
        keys = list(zip(states, roles, documents, strict=True))
        for (state, role, document), places in groupby(range(len(tokens)), key=keys.__getitem__):
            ids = [tokens[place] for place in places]
            yield Span(self._decoded(ids), len(ids), state, role, document)

    def _decoded(self, ids: Sequence[int]) -> str:
        if self._template.asked is None:
            return " ".join(map(str, ids)) + " "
        return str(self._template.asked.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def _roles_of(self, tokens: list[int]) -> list[str | None]:
        """Whose turn each token belongs to, by what the template writes before what somebody says."""
        begins = {place: role for place, role, _ in self._template.turns(tokens)}
        role: str | None = None
        found = []
        for place in range(len(tokens)):
            role = begins.get(place, role)
            found.append(role)
        return found


def _documents(forward: Forward, tokens: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """(rows, tokens): the number of the document that a token is in, counted from 1."""
    positions = forward.tensors.get("position_ids")
    if positions is None or positions.shape != tokens.shape:
        return torch.ones_like(tokens)
    begins = (positions == 0) & real
    begins[:, 1:] &= positions[:, :-1] > 0
    begins[:, 0] = True
    return begins.long().cumsum(1)


def taught_by(
    script: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    rows: int = ROWS,
    updates: int = UPDATES,
) -> TaughtReport:
    """Run a script until it has made ``updates`` updates, and say which tokens of its rows carry a loss.

    Raises:
        CannotTry: there is no such script, it is not Python, or nothing it trains has tokens.
    """
    path = None if module else readable_script(script)
    report = TaughtReport(script)
    options = Options((partial(_Teaching, report=report, rows=rows),), every=1, updates=updates)
    session = Session(options, Locator(path))
    with as_main(script, arguments, path), room_on_the_stack(), instrumented(session):
        end = run_as_main(script, path, session.locator)
    session.ends()
    report.crashed = end.crashed
    report.notes = [note for monitor in session.monitors for note in monitor.notes]
    if end.crashed is not None and not report.rows_seen:
        print(end.crashed, file=sys.stderr)
        raise CannotTry(f"{script} crashed before it taught a token")
    if not report.rows_seen:
        told = f" ({'; '.join(report.notes)})" if report.notes else ""
        raise CannotTry(
            f"{script} trained no language model that harness tokens could follow: no model got token labels, and "
            f"no watched loss got a model's logits{told}"
        )
    return report


@contextmanager
def taught(*, rows: int = ROWS) -> Iterator[TaughtReport]:
    """Look at the tokens that the training in the block teaches: in a notebook, or in a test.

    Args:
        rows: how many rows are kept, the first ones.

    Raises:
        CannotTry: nothing in the block taught a token.
    """
    report = TaughtReport(Path.cwd().name)
    session = Session(Options((partial(_Teaching, report=report, rows=rows),), every=1), Locator())
    with instrumented(session):
        yield report
    session.ends()
    report.notes = [note for monitor in session.monitors for note in monitor.notes]
    if not report.rows_seen:
        raise CannotTry("no model in the block got token labels, or passed logits to a watched loss")
