"""``watch``: the same for a block of code, which goes on as if nobody looked."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import re
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, Dataset, TensorDataset, dataloader

from harness.errors import CannotTry
from harness.findings import interactive_shell
from harness.watch import SilentBug, watch

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
    with watch() as watched:
        loop()
    assert watched.updates_made == 16
    assert watched.findings == {}
    assert watched.notes == []


def test_a_silent_bug_ends_the_block() -> None:
    found = r"(?s)gradients::not-cleared.*where +\S*test_watch.py:\d+, update 2"
    with pytest.raises(SilentBug, match=found), watch():
        loop(clears=False)


def test_findings_can_be_had_without_an_error_and_be_ignored() -> None:
    with watch(raise_errors=False) as watched:
        loop(clears=False)
    assert list(watched.findings) == ["gradients::not-cleared"]
    with watch(ignore=["gradients::not-cleared"]):
        loop(clears=False)
    absent = watch(ignore=["gradients::cleared"])
    with pytest.raises(CannotTry, match="there is no check gradients::cleared; did you mean"), absent:
        pass


def test_a_block_without_training_is_no_success() -> None:
    with pytest.raises(CannotTry, match="no optimizer made a step in the watched block"), watch():
        torch.nn.Linear(2, 2)(torch.zeros(1, 2))
    with watch(must_train=False):
        pass


def test_a_process_that_the_block_forks_has_no_verdict_of_its_own() -> None:
    with watch(raise_errors=False):
        child = os.fork()
        if child == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        loop()


def test_an_error_of_the_block_is_its_own_and_carries_what_was_found() -> None:
    def fails() -> None:
        with watch():
            loop(clears=False)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        fails()
    assert any("gradients::not-cleared" in note for note in raised.value.__notes__)


def _looked_at() -> Iterator[tuple[str, Any]]:
    """What the hooks replace."""
    owners: list[Any] = [torch.autograd, nn.functional, torch.nn.utils, torch.nn.utils.clip_grad, nn.Module, torch]
    owners += [torch.Tensor, torch.optim.Optimizer, dataloader._BaseDataLoaderIter, torch.amp.grad_scaler.GradScaler]
    owners += [each for each in vars(lr_scheduler).values() if isinstance(each, type)]
    for owner in owners:
        for name, value in vars(owner).items():
            yield f"{owner.__name__}.{name}", value


def test_everything_is_put_back() -> None:
    """Attributes are the same objects again, and no hook is left."""
    loop()  # the first step of an optimizer imports what replaces torch.manual_seed
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


@pytest.mark.nightly
def test_watching_changes_no_bit_of_the_scripts() -> None:
    """Each script of the corpus, watched, watched in windows and unwatched: all parameters after each update."""
    command = [sys.executable, "-m", "tests.checks.same_bits"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) >= 8
    for script, (unwatched, watched, in_windows) in found.items():
        assert len(unwatched) >= 12, script
        assert watched == unwatched, script
        assert in_windows == unwatched, script


@pytest.mark.nightly
def test_ten_thousand_updates_keep_nothing() -> None:
    """What the monitor, the facts and the checks hold does not grow with the updates, nor with the epochs."""

    def objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = lr_scheduler.ConstantLR(optimizer, 1.0)
    data = TensorDataset(torch.randn(40, 2), torch.arange(40) % 2)
    loader = DataLoader(data, batch_size=4, shuffle=True)
    counts, made = [], 0
    with watch(raise_errors=False, every=1) as watched:
        for _ in range(1_000):
            for inputs, labels in loader:
                nn.functional.cross_entropy(model(inputs), labels).backward()
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                made += 1
                if made in (2_999, 9_999):  # by then what is remembered of epochs has its full length
                    counts.append(objects())
            with torch.no_grad():
                for inputs, _ in DataLoader(data, batch_size=20):
                    model(inputs)
    assert watched.updates_made == 10_000
    assert watched.crashed == {}
    assert counts[1] - counts[0] < 200


def test_loaders_that_are_left_keep_no_datasets() -> None:
    """A loader that is made anew for each epoch, and left before its end, is let go of with its rows."""

    class Rows(Dataset[Any]):
        def __len__(self) -> int:
            return 80

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            return torch.ones(2), index % 2

    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    datasets = []
    with watch(raise_errors=False):
        for _ in range(12):
            rows = Rows()
            datasets.append(weakref.ref(rows))
            for step, (inputs, labels) in enumerate(DataLoader(rows, batch_size=4, shuffle=True)):
                nn.functional.cross_entropy(model(inputs), labels).backward()
                optimizer.step()
                optimizer.zero_grad()
                if step == 4:
                    break
        gc.collect()
        assert sum(each() is not None for each in datasets) <= 4  # the first and the latest of their kind


def test_a_forward_that_raises_is_forgotten() -> None:
    """The depth of calls is counted; one that ends with an error must not be counted for ever."""

    class Raises(nn.Linear):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            if inputs.shape[0] == 1:
                raise ValueError("one row")
            return super().forward(inputs)

    with watch(must_train=False) as watched:
        model = Raises(2, 2)
        with pytest.raises(ValueError, match="one row"):
            model(torch.ones(1, 2))
        assert watched.first.forwards == []
        model(torch.ones(2, 2))
        assert len(watched.first.forwards) == 1


class HoldsItsLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.loss = nn.Linear(2, 2), nn.functional.cross_entropy


def test_what_was_made_under_watch_can_be_copied_and_pickled() -> None:
    """Functions take the place of functions: a model may hold a loss function, and an optimizer is deep-copied."""

    with watch(must_train=False):
        model = HoldsItsLoss()
        optimizer = torch.optim.AdamW(model.parameters())
        twin, _ = copy.deepcopy(model), copy.deepcopy(optimizer)
        again = pickle.loads(pickle.dumps(model))
    assert twin.loss(torch.eye(2), torch.arange(2)) == again.loss(torch.eye(2), torch.arange(2))


def test_a_librarys_warning_names_the_users_line() -> None:
    """torch warns its caller, and that is not the wrapper in between."""
    with pytest.warns(UserWarning, match="Using a target size") as caught, watch(raise_errors=False, must_train=False):
        nn.functional.mse_loss(torch.zeros(2, 1, requires_grad=True), torch.zeros(2))
    assert [each.filename for each in caught] == [__file__]


CELL = """\
def train(model, optimizer):
    for _ in range(3):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
"""


def test_a_stand_in_for_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    assert interactive_shell() is None


def test_a_line_of_a_notebook_is_named_as_jupyter_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is asked of IPython's shell: a cell's name by that of its code, and the cells' texts."""
    name = f"/tmp/ipykernel_{os.getpid()}/1796301451.py"
    compiler = SimpleNamespace(format_code_name=lambda file: ("Cell", "In[2]") if file == name else None)
    shell = SimpleNamespace(compile=compiler, user_ns={"In": ["", "import torch", CELL]})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    cell: dict[str, Any] = {"torch": torch}
    exec(compile(CELL, name, "exec"), cell)
    model = nn.Linear(2, 2)
    with pytest.raises(SilentBug) as found, watch(select=["gradients::not-cleared"]):
        cell["train"](model, torch.optim.SGD(model.parameters(), lr=0.1))
    first, _, *lines = str(found.value).splitlines()
    assert re.fullmatch(r"gradients::not-cleared at Cell In\[2\], line 4, update \d", first)
    assert any(line.startswith("    where     Cell In[2], line 4, update ") for line in lines)
    assert "              > 4 | optimizer.step()" in lines


def test_a_decorated_function_is_watched_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    decorated = watch()(loop)
    assert decorated()[1] == decorated()[1]
    with pytest.raises(SilentBug, match=r"^gradients::not-cleared at tests/watch/test_watch\.py:\d+, update \d+"):
        decorated(clears=False)


def test_what_is_raised_shows_the_users_line_and_none_of_ours_below() -> None:
    with pytest.raises(SilentBug) as found, watch():
        loop(clears=False)
    files = [Path(entry.path).name for entry in found.traceback]
    assert files == ["test_watch.py", "__init__.py"], "the second one is hidden by pytest"
    assert found.traceback[1].frame.f_locals["__tracebackhide__"]
    assert found.value.__suppress_context__
