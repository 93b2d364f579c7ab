"""Nothing that the watch keeps grows with the updates of a run.

Each style of loop runs under all checks and the sections of the description, with the bounds of their containers
lowered so that a short run goes beyond each; then the containers have as many entries after half of it as at its end.
"""

from __future__ import annotations

import copy
import gc
import importlib
import pkgutil
from collections import Counter, UserDict, deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from weakref import WeakKeyDictionary

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import harness.describe
import harness.watch.checks
import harness.watch.facts
import harness.watch.run
from harness import catalogue
from harness.describe.page import SECTIONS
from harness.watch import bounded, checks_of
from harness.watch.instrument import instrumented
from harness.watch.locate import Locator
from harness.watch.monitor import Options
from harness.watch.session import Session

UPDATES = 240
BOUND = 16
"""Of every container in the place of its own."""
FEW = 4
"""Entries by which a container may differ: what is at hand at the moment."""

Updated = Callable[[int], None]


def epochs(updated: Updated) -> None:
    """Loaders that are made anew for each epoch, a schedule, and an evaluation and two saves each."""
    rows = torch.randn(64, 4)
    labels = (rows[:, 0] > 0).long()
    model, made = network(), 0
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / (UPDATES + 1))
    while made < UPDATES:
        model.train()
        for given, label in DataLoader(TensorDataset(rows, labels), batch_size=16, shuffle=True):
            loss = functional.cross_entropy(model(given), label)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            made += 1
            print(f"update {made}: loss {loss.item():.4f}, lr {scheduler.get_last_lr()[0]}")
            updated(made)
        model.eval()
        hits = 0
        with torch.no_grad():
            for given, label in DataLoader(TensorDataset(rows, labels), batch_size=16):
                hits += int((model(given).argmax(1) == label).sum())
        print(f"accuracy {hits / 64}")
        torch.save(model.state_dict(), f"model-{made}.pt")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")


def by_hand(updated: Updated) -> None:
    """New rows in each update, a teacher, an average of the weights, and rows that are scored one by one."""
    model, teacher = network(), network()
    average, optimizer = copy.deepcopy(model), torch.optim.SGD(model.parameters(), lr=0.1)
    for made in range(1, UPDATES + 1):
        rows = torch.randn(16, 4)
        with torch.no_grad():
            taught = teacher(rows)
        loss = ((model(rows) - taught) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mine, its in zip(average.parameters(), model.parameters(), strict=True):
                mine.mul_(0.9).add_(its, alpha=0.1)
            held_out = torch.randn(8, 4)
            accuracy = ((model(held_out)[:, 0] > 0) == (held_out[:, 0] > 0)).float().mean()
            for _ in range(3):
                int(model(torch.randn(1, 4)).argmax(1))
        print(f"accuracy {accuracy.item()}")
        updated(made)


def adversarial(updated: Updated) -> None:
    generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
    optimizers = [torch.optim.Adam(each.parameters()) for each in (generator, discriminator)]
    criterion = nn.BCEWithLogitsLoss()
    for made in range(1, UPDATES + 1):
        made_up = generator(torch.randn(8, 3))
        told = criterion(discriminator(torch.randn(8, 4)), torch.ones(8, 1))
        told = told + criterion(discriminator(made_up.detach()), torch.zeros(8, 1))
        fooled = None
        for optimizer in reversed(optimizers):
            optimizer.zero_grad()
            (told if fooled is None else fooled).backward()
            optimizer.step()
            fooled = criterion(discriminator(made_up), torch.ones(8, 1))
        updated(made)


def episodes(updated: Updated) -> None:
    """A policy that is asked row by row, and updated after each episode."""
    policy = network()
    optimizer = torch.optim.Adam(policy.parameters())
    for made in range(1, UPDATES + 1):
        chosen = []
        for _ in range(5):
            actions = torch.distributions.Categorical(logits=policy(torch.randn(1, 4)))
            chosen.append(actions.log_prob(actions.sample()) * torch.randn(1))
        optimizer.zero_grad()
        (-torch.cat(chosen).sum()).backward()
        optimizer.step()
        updated(made)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))


@pytest.mark.parametrize(
    "loop",
    [epochs, by_hand, *(pytest.param(loop, marks=pytest.mark.nightly) for loop in (adversarial, episodes))],
    ids=lambda loop: loop.__name__,
)
def test_nothing_grows_with_the_updates(
    loop: Callable[[Updated], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ours = (harness.watch.run, harness.watch.facts, harness.watch.checks, harness.describe)
    for module in (*map(modules_of, ours), iter([bounded])):
        for each in module:
            for name in bounds_of(each):
                monkeypatch.setattr(each, name, BOUND)
    torch.manual_seed(0)
    session = Session(Options(checks_of(catalogue.checks()), every=1, sections=SECTIONS), Locator())
    found: list[Counter[str]] = []

    def updated(made: int) -> None:
        if made in (UPDATES // 2, UPDATES):
            gc.collect()
            found.append(sizes(session.first))

    with instrumented(session):
        loop(updated)
    assert session.first.crashed == {}
    half, end = found
    assert sum(half.values()) > 1_000, "containers were found"
    assert {path: (half[path], n) for path, n in end.items() if n - half[path] > FEW} == {}


def test_what_grows_is_seen() -> None:
    session = Session(Options(()), Locator())
    session.first.notes += map(str, range(100))
    assert sizes(session.first)["Monitor.notes"] == 100


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(each.name)


def bounds_of(module: ModuleType) -> list[str]:
    return [
        name for name, value in vars(module).items() if name.startswith("MOST") and type(value) is int and value > BOUND
    ]


def sizes(root: object) -> Counter[str]:
    """How many entries the containers have that hang on an object of the harness, by the attribute that holds them."""
    found: Counter[str] = Counter()
    seen: set[int] = set()
    waiting: list[tuple[object, str]] = [(root, "")]
    while waiting:
        each, path = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        inner = list[object]()
        if isinstance(each, (Mapping, UserDict, WeakKeyDictionary)):
            inner += [part for pair in list(each.items()) for part in pair]
            found[path] += len(each)
        elif isinstance(each, (list, tuple, set, frozenset, deque)):
            inner += each
            found[path] += len(each)
        waiting += [(part, f"{path}[]") for part in inner]
        if type(each).__module__.partition(".")[0] == "harness" and hasattr(each, "__dict__"):
            waiting += [(value, f"{type(each).__name__}.{name}") for name, value in vars(each).items()]
    return found
