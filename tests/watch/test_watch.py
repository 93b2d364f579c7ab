"""``watch``: the same for a block of code, which goes on as if nobody looked."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset, dataloader

from harness.errors import CannotTry
from harness.watch import SilentBug, hooks, watch
from harness.watch.invariants import INVARIANTS, STATEMENTS
from harness.watch.observer import Invariant, Statement

ROOT = Path(__file__).parents[2]


def loop(*, clears: bool = True, updates: int = 16) -> tuple[nn.Module, list[float]]:
    torch.manual_seed(3)
    data = TensorDataset(torch.randn(32, 4), torch.arange(32) % 2)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses: list[float] = []
    while len(losses) < updates:
        for inputs, labels in DataLoader(data, batch_size=4, shuffle=True):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            if clears:
                optimizer.zero_grad()
            losses.append(loss.item())
    return model, losses


def test_a_right_loop_passes() -> None:
    with watch() as observer:
        loop()
    assert observer.updates_made == 16
    assert observer.findings == {}
    assert observer.notes == []


def test_a_silent_bug_ends_the_block() -> None:
    found = r"(?s)gradients::cleared-between-updates.*where +\S*test_watch.py:\d+, update 2"
    with pytest.raises(SilentBug, match=found), watch():
        loop(clears=False)


def test_findings_can_be_had_without_an_error_and_be_ignored() -> None:
    with watch(raise_errors=False) as observer:
        loop(clears=False)
    assert list(observer.findings) == ["gradients::cleared-between-updates"]
    with watch(ignore=["gradients::cleared-between-updates"]):
        loop(clears=False)
    absent = watch(ignore=["gradients::cleared"])
    with pytest.raises(CannotTry, match="there is no check gradients::cleared; did you mean"), absent:
        pass


def test_an_error_of_the_block_is_its_own_and_carries_what_was_found() -> None:
    def fails() -> None:
        with watch():
            loop(clears=False)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        fails()
    assert any("gradients::cleared-between-updates" in note for note in raised.value.__notes__)


def _looked_at() -> Iterator[tuple[str, Any]]:
    """What the hooks replace."""
    owners: list[Any] = [torch.autograd, nn.functional, torch.nn.utils, torch.nn.utils.clip_grad, nn.Module, torch]
    owners += [torch.optim.Optimizer, dataloader._BaseDataLoaderIter, torch.amp.grad_scaler.GradScaler]
    owners += [each for each in vars(lr_scheduler).values() if isinstance(each, type)]
    for owner in owners:
        for name, value in vars(owner).items():
            yield f"{owner.__name__}.{name}", value


def test_everything_is_put_back() -> None:
    """Attributes are the same objects again, and no hook is left."""
    before = dict(_looked_at())
    finders = list(sys.meta_path)
    module, optimizer = sys.modules["torch.nn.modules.module"], sys.modules["torch.optim.optimizer"]
    hooked = [module._global_forward_pre_hooks, module._global_forward_hooks]
    hooked += [optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks]
    counts = [len(each) for each in hooked]
    with watch():
        assert any(value is not before.get(name) for name, value in _looked_at())
        loop()
    after = dict(_looked_at())
    assert {name for name in before if before[name] is not after.get(name)} == set()
    assert after.keys() == before.keys()
    assert [len(each) for each in hooked] == counts
    assert sys.meta_path == finders


def test_watching_changes_no_bit() -> None:
    model, losses = loop()
    with watch():
        watched, watched_losses = loop()
    assert watched_losses == losses
    for mine, theirs in zip(model.parameters(), watched.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_watching_changes_no_bit_of_the_scripts() -> None:
    """Each script of the corpus, watched and unwatched: all parameters after each update."""
    command = [sys.executable, "-m", "tests.mutants.loops.same_bits"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) >= 8
    for script, (unwatched, watched) in found.items():
        assert len(unwatched) >= 12, script
        assert watched == unwatched, script


class Faulty(Invariant):
    """Fails itself at the third update."""

    checks = (Statement("faulty::never", "Nothing."),)

    def step(self, event: Any) -> None:
        if event.update == 3:
            raise KeyError("a fault of ours")


def test_a_fault_of_ours_is_one_line_and_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_DEBUG", raising=False)
    monkeypatch.setattr("harness.watch.invariants.INVARIANTS", (Faulty, *INVARIANTS))
    with pytest.raises(SilentBug) as raised, watch() as observer:
        loop(clears=False)
    assert observer.updates_made == 16
    (note,) = observer.notes
    assert note == (
        "the checks of faulty failed themselves and were left out from update 3 on: KeyError at step: 'a fault of ours'"
    )
    assert "gradients::cleared-between-updates" in str(raised.value), "the other checks go on"


def test_ten_thousand_updates_keep_nothing() -> None:
    """What the observer holds does not grow with the updates."""

    def objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    counts = []
    with watch(raise_errors=False) as observer:
        for made in range(10_000):
            nn.functional.cross_entropy(model(torch.randn(4, 2)), torch.tensor([0, 1, 0, 1])).backward()
            optimizer.step()
            optimizer.zero_grad()
            if made in (999, 9_999):
                counts.append(objects())
    assert observer.updates_made == 10_000
    assert counts[1] - counts[0] < 200


def test_a_forward_that_raises_is_forgotten() -> None:
    """The depth of calls is counted; one that ends with an error must not be counted for ever."""

    class Raises(nn.Linear):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            if inputs.shape[0] == 1:
                raise ValueError("one row")
            return super().forward(inputs)

    seen = []
    with watch() as observer:
        model = Raises(2, 2)
        with pytest.raises(ValueError, match="one row"):
            model(torch.ones(1, 2))
        observer._listeners["forward"].append((observer.invariants[0], seen.append))
        model(torch.ones(2, 2))
    assert len(seen) == 1


def test_statements_have_one_id_each() -> None:
    assert len(STATEMENTS) >= 48
    for check, statement in STATEMENTS.items():
        family, _, name = check.partition("::")
        assert family, check
        assert name, check
        assert statement.says.endswith("."), check


def test_everything_that_is_emitted_has_a_name() -> None:
    """An invariant's method that no event calls would be a check that cannot fail."""
    from harness.watch.observer import EVENTS

    for invariant in INVARIANTS:
        public = {name for name in vars(invariant) if not name.startswith("_")} - {"checks", "compare"}
        handlers = {name for name in public if callable(getattr(invariant, name))}
        assert handlers <= set(EVENTS), invariant
    assert hooks.WHOLE > hooks.SHORTENED > hooks.LATER
