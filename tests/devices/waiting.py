"""How often a loop on the second device waits for it: a program for a server that has it (tests.server).

``main([OUTPUT, HOW, UPDATES, BATCHES])``: a small classifier makes so many updates, and is then scored on so many
batches. ``HOW`` is ``alone``, ``checked`` (as ``harness check --full`` watches it) or ``windows`` (as the callbacks
do, between two windows). OUTPUT is told how often it waited during the updates, and during the scoring.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

BATCH = 16
PER_EPOCH = 100
"""Batches of one pass over the training rows."""


def main(arguments: Sequence[str], prog_name: str = "harness") -> None:
    from tests.devices import second

    output, how, updates, batches = arguments
    train, score = _loop(int(updates), int(batches))
    before = sum(second.waits())
    with WATCHED[how]():
        train()
        between = sum(second.waits())
        score()
        after = sum(second.waits())
    Path(output).write_text(json.dumps({"updates": between - before, "scoring": after - between}), encoding="utf-8")


def _loop(updates: int, batches: int) -> tuple[Callable[[], None], Callable[[], None]]:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    rows = torch.randn(BATCH * (PER_EPOCH + batches), 8)
    labels = (rows[:, :2].sum(1) > 0).long()
    ends = BATCH * PER_EPOCH
    train, held_out = TensorDataset(rows[:ends], labels[:ends]), TensorDataset(rows[ends:], labels[ends:])
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2)).to("second")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / updates)

    def training() -> None:
        model.train()
        for _ in range(updates // PER_EPOCH):
            for given, label in DataLoader(train, batch_size=BATCH, shuffle=True):
                loss = nn.functional.cross_entropy(model(given.to("second")), label.to("second"))
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()

    def scoring() -> None:
        model.eval()
        hits = torch.zeros((), device="second")
        with torch.no_grad():
            for given, label in DataLoader(held_out, batch_size=BATCH):
                hits += (model(given.to("second")).argmax(1) == label.to("second")).sum()
        print("accuracy", hits.item() / len(held_out))

    return training, scoring


@contextmanager
def _checked() -> Iterator[Any]:
    from harness import catalogue
    from harness.watch import checks_of
    from harness.watch.instrument import instrumented
    from harness.watch.locate import Locator
    from harness.watch.monitor import Options
    from harness.watch.session import Session

    with instrumented(Session(Options(checks_of(catalogue.checks())), Locator())):
        yield


@contextmanager
def _between_windows() -> Iterator[Any]:
    from harness.watch.windows import Windows

    watching = Windows(lambda finding: None, apart=1_000_000)
    watching._first = ()
    watching.begin()
    yield
    watching.end()
    assert watching.updates
    assert not watching.windows


WATCHED: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "alone": nullcontext,
    "checked": _checked,
    "windows": _between_windows,
}
