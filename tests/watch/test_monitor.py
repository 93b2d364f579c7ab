"""The monitor: what becomes of a check that fails, of signals, of several threads."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import UnionType
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from harness import catalogue
from harness.errors import CannotTry
from harness.watch import SilentBug, watch
from harness.watch.bus import RECOGNISERS
from harness.watch.check import HELD, Check, Found
from harness.watch.events import BackwardBegins, Event, Fact, Forward, LossCall, OptimizerMade, Step, StepBegins
from harness.watch.facts.gradient_ledger import GradientsUsed
from harness.watch.instrument import instrumented
from harness.watch.instrument.patches import Patches
from harness.watch.locate import Locator, from_signal_handler
from harness.watch.monitor import Monitor, Options
from harness.watch.recogniser import Recogniser
from harness.watch.session import Session

PAGE = """
    ## Why is this a bug?
    A test.

    ## What to do
    Nothing.

    ## When it is right
    Always.
"""


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Checks that a test makes are gone afterwards."""
    monkeypatch.delenv("HARNESS_DEBUG", raising=False)
    catalogue.faults()
    before = dict(catalogue._registered)
    yield
    catalogue._registered.clear()
    catalogue._registered.update(before)


def a_check(name: str, of: type[Event] | UnionType, judge: Callable[..., Any]) -> type[Check]:
    """A check that is asked about one kind of event or fact."""

    def judges(self: Check, event: Any) -> Any:
        return judge(event)

    judges.__annotations__ = {"event": of}
    return type(name, (Check,), {"__doc__": f"Wrong.\n{PAGE}", "id": f"tests::{name.lower()}", "judge": judges})


def update(model: nn.Module, optimizer: torch.optim.Optimizer, *, clears: bool = True) -> None:
    nn.functional.cross_entropy(model(torch.randn(4, 2)), torch.tensor([0, 1, 0, 1])).backward()
    optimizer.step()
    if clears:
        optimizer.zero_grad()


def loop(updates: int = 6, *, clears: bool = True) -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(updates):
        update(model, optimizer, clears=clears)


def watched(*checks: type[Check], run: Any = loop) -> Session:
    threads = Session(Options(checks=checks, every=1), Locator())
    with instrumented(threads):
        run()
    threads.ends()
    return threads


# A check that fails itself


def fails_at_the_third(event: Step) -> None:
    if event.update == 3:
        raise KeyError("a fault of ours")


def test_a_check_that_fails_leaves_out_itself_alone() -> None:
    seen: list[int] = []
    faulty = a_check("Faulty", Step, fails_at_the_third)
    other = a_check("Other", Step, lambda event: seen.append(event.update))
    threads = watched(faulty, other)
    assert seen == [1, 2, 3, 4, 5, 6]
    assert list(threads.crashed) == ["tests::faulty"]
    assert "KeyError: 'a fault of ours' (test_monitor.py:" in threads.crashed["tests::faulty"]
    assert threads.crashed["tests::faulty"].endswith("update 3)")


class Built(Fact):
    """Made by a recogniser of a test, which the test declares."""


@pytest.fixture
def _nobody_makes() -> Iterator[None]:
    yield
    RECOGNISERS.pop(Built, None)


@pytest.mark.usefixtures("_nobody_makes")
def test_a_recogniser_that_fails_leaves_out_the_checks_that_need_it() -> None:
    class Faulty(Recogniser):
        def on_step(self, event: Step) -> None:
            raise ValueError("a fault of ours")

    class Builds(Recogniser):
        makes = (Built,)

        def __init__(self, monitor: Monitor) -> None:
            super().__init__(monitor)
            self.faulty = monitor.fact(Faulty)

        def on_step_begins(self, event: StepBegins) -> None:
            self.tell(Built())

    seen: list[int] = []
    one = a_check("One", Built, lambda fact: seen.append(fact.at.update))
    other = a_check("Other", StepBegins, lambda event: seen.append(event.update))
    threads = watched(one, other)
    assert list(threads.crashed) == ["tests::one"]
    assert seen == [1, 1, 2, 3, 4, 5, 6], "the first is not told any more after the first update"


@pytest.mark.usefixtures("_nobody_makes")
def test_a_check_is_not_told_of_the_event_in_which_its_recogniser_failed() -> None:
    """What it keeps may be half up to date, and the check would report what is not so."""

    class Faulty(Recogniser):
        makes = (Built,)

        def on_step(self, event: Step) -> None:
            raise ValueError("a fault of ours")

    seen: list[int] = []
    check = a_check("Reads", Step | Built, lambda event: seen.append(event.at.update))
    assert list(watched(check).crashed) == ["tests::reads"]
    assert seen == []


def test_a_step_that_raises_is_not_the_last_that_is_seen() -> None:
    """Scripts catch running out of memory and go on."""

    class Raises(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            self.steps = getattr(self, "steps", 0) + 1
            if self.steps == 2:
                raise RuntimeError("out of memory")
            return super().step(closure)

    def run() -> None:
        model = nn.Linear(2, 2)
        optimizer = Raises(model.parameters(), lr=0.01)
        for _ in DataLoader(TensorDataset(torch.zeros(5, 1))):
            try:
                update(model, optimizer)
            except RuntimeError:
                optimizer.zero_grad()

    assert watched(run=run).updates_made == 4


def test_a_step_that_calls_its_base_classes_step_is_one_step() -> None:
    """torch's hooks are on both, where the base class has been used for itself before."""

    class Own(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    def run() -> None:
        loop(1)
        model = nn.Linear(2, 2)
        optimizer = Own(model.parameters(), lr=0.01)
        for _ in range(5):
            update(model, optimizer)

    begun: list[int] = []
    counts = a_check("Begun", StepBegins, lambda event: begun.append(event.number))
    watched(counts, run=run)
    assert begun == [1, 1, 2, 3, 4, 5]


class Ascends(torch.optim.SGD):
    """Sharpness-aware: the gradients that are used are those that a closure makes elsewhere."""

    def step(self, closure: Any = None) -> Any:
        (parameter,) = self.param_groups[0]["params"][:1]
        with torch.no_grad():
            parameter.add_(away := 0.05 * parameter.grad)
        self.zero_grad()
        with torch.enable_grad():
            loss = closure()
        with torch.no_grad():
            parameter.sub_(away)
        super().step()
        return loss


class OfItsOwn(torch.optim.Optimizer):
    """Calls the closure first, as torch's do."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.01})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        with torch.enable_grad():
            loss = closure()
        for parameter in self.param_groups[0]["params"]:
            parameter -= 0.01 * parameter.grad
        return loss


@pytest.mark.parametrize(
    "kind",
    [torch.optim.Adam, torch.optim.LBFGS, torch.optim.SGD, OfItsOwn, Ascends],
    ids=lambda kind: kind.__name__,
)
@pytest.mark.parametrize("clears", [True, False], ids=["clears", "never clears"])
def test_a_closure_makes_the_gradients_of_its_own_step(kind: Any, clears: bool) -> None:
    def run() -> None:
        torch.manual_seed(0)
        model = nn.Linear(2, 2)
        optimizer = kind(model.parameters())
        for _ in range(6):
            inputs, labels = torch.randn(8, 2), torch.randint(2, (8,))

            def closure(inputs: torch.Tensor = inputs, labels: torch.Tensor = labels) -> torch.Tensor:
                if clears:
                    optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
                return loss

            if kind is Ascends:
                closure()
            optimizer.step(closure)
            if clears and kind is Ascends:
                optimizer.zero_grad()

    with watch(raise_errors=False) as found:
        run()
    assert found.updates_made == 6
    assert list(found.findings) == ([] if clears else ["gradients::not-cleared"])


def test_hooks_of_the_script_come_before_and_after_the_step() -> None:
    """They are no part of its formula."""

    def run() -> None:
        torch.manual_seed(0)
        model = nn.Linear(2, 2)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

        def clip(*_: Any) -> None:
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)

        def clamp(*_: Any) -> None:
            model.weight.data.clamp_(-0.1, 0.1)

        optimizer.register_step_pre_hook(clip)
        optimizer.register_step_post_hook(clamp)
        for _ in range(5):
            update(model, optimizer)
        assert len(optimizer._optimizer_step_pre_hooks) == len(optimizer._optimizer_step_post_hooks) == 1

    with watch(raise_errors=False) as found:
        run()
    assert found.updates_made == 5
    assert list(found.findings) == []


def test_what_torch_records_or_runs_for_many_is_left_alone() -> None:
    """jit.trace compares what it records twice; torch.func's tensors cannot be looked at."""

    def run() -> None:
        loop(3)
        model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
        torch.jit.trace(model.eval(), torch.randn(3, 2))
        torch.jit.trace(lambda one, other: (one - other) == one, (torch.randn(2, 1), torch.randn(2)))
        torch.jit.script(model)(torch.randn(3, 2))
        named = dict(model.named_parameters())

        def loss(parameters: Any, row: torch.Tensor) -> torch.Tensor:
            return nn.functional.mse_loss(torch.func.functional_call(model, parameters, row), row)

        each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(named, torch.randn(5, 2))
        assert each["0.weight"].shape == (5, 2, 2)

    with watch(raise_errors=False) as found:
        run()
    assert (found.findings, found.crashed) == ({}, {})


def test_a_class_may_have_parameters_of_its_own() -> None:
    class Learner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kept = nn.ParameterList([nn.Parameter(torch.randn(2, 2))])

        def parameters(self, recurse: bool = True) -> Any:
            return self.kept

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return rows @ self.kept[0]

    def run() -> None:
        model = Learner()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            update(model, optimizer)

    with watch(raise_errors=False) as found:
        run()
    assert (found.updates_made, found.findings, found.crashed) == (3, {}, {})


def test_an_output_that_is_a_parameter_keeps_no_hooks() -> None:
    class Given(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.picture = nn.Parameter(torch.randn(4, 2))

        def forward(self) -> torch.Tensor:
            return self.picture

    model = Given()

    def run() -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(20):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(), torch.zeros(4, 2)).backward()
            optimizer.step()

    assert watched(run=run).updates_made == 20
    assert not model.picture._backward_hooks


def test_losses_may_come_from_a_generator() -> None:
    def run() -> torch.Tensor:
        weight = torch.zeros(2, requires_grad=True)
        losses = [(weight - each).square().sum() for each in (1.0, 3.0)]
        torch.autograd.backward(each for each in losses)  # type: ignore[arg-type]
        assert weight.grad is not None
        return weight.grad

    alone = run()
    assert torch.equal(alone, torch.full((2,), -8.0))
    with watch(must_train=False):
        assert torch.equal(run(), alone)


def test_sparse_rows_and_indices_that_are_arrays() -> None:
    rows = torch.randint(2, (64, 6)).float()

    class Bags(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 2))

        def forward(self, bags: torch.Tensor) -> torch.Tensor:
            return torch.sparse.mm(bags, self.weight)

    def collate(drawn: Any) -> Any:
        inputs, labels = torch.utils.data.default_collate(drawn)
        return inputs.to_sparse(), labels

    def run() -> None:
        model = Bags()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = TensorDataset(rows, (rows.sum(1) > 3).long())
        for _ in range(3):
            drawn = torch.randperm(64).split(8)
            for inputs, labels in DataLoader(data, batch_sampler=drawn, collate_fn=collate):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(inputs), labels).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                model(rows[:8].to_sparse())
            model.train()

    with watch(raise_errors=False) as found:
        run()
    assert (found.updates_made, found.findings, found.crashed) == (24, {}, {})


def test_after_many_updates_tensors_are_looked_at_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.watch.monitor.CLOSELY", 12)
    monkeypatch.setattr("harness.watch.monitor.SELDOM", 10)
    looks: list[int] = []

    def notes(event: Step) -> None:
        if event.at.sampled:
            looks.append(event.update)

    watched(a_check("Looks", Step, notes), run=lambda: loop(45))
    assert looks == [*range(1, 13), 20, 30, 40]


def test_a_comment_counts_in_a_watched_block_too() -> None:
    def run() -> None:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(4):
            nn.functional.cross_entropy(model(torch.randn(4, 2)), torch.tensor([0, 1, 0, 1])).backward()
            optimizer.step()  # harness: ignore[gradients::not-cleared]

    with watch() as found:
        run()
    assert list(found.findings) == ["gradients::not-cleared"]


@pytest.mark.usefixtures("_nobody_makes")
def test_recognisers_are_told_first_whoever_needs_them() -> None:
    order: list[str] = []

    class Late(Recogniser):
        makes = (Built,)

        def on_step(self, event: Step) -> None:
            order.append("recogniser")
            self.tell(Built())

    first = a_check("First", Step, lambda event: order.append("first"))
    second = a_check("Second", Built, lambda fact: order.append("second"))
    watched(first, second, run=lambda: loop(1))
    assert order == ["recogniser", "second", "first"]


def test_a_fact_that_nobody_needs_is_not_made() -> None:
    threads = watched(a_check("First", Step, lambda event: HELD), run=lambda: loop(1))
    assert threads.first.bus.recognisers() == []


def test_a_fact_has_one_recogniser() -> None:
    with pytest.raises(TypeError, match=r"Again makes GradientsUsed, which GradientLedger makes"):
        type("Again", (Recogniser,), {"makes": (GradientsUsed,)})


def test_nothing_found_is_not_said_where_a_check_failed() -> None:
    faulty = a_check("Faulty", Step, fails_at_the_third)
    faulty.__module__ = f"{catalogue.CHECKS}.tests"
    with pytest.raises(CannotTry, match="tests::faulty: the check itself crashed: KeyError"), watch():
        loop()
    with pytest.raises(SilentBug, match="gradients::not-cleared"), watch():
        loop(clears=False)


# A watch that fails itself


def trained(updates: int = 6) -> tuple[list[float], list[torch.Tensor]]:
    """Losses and weights of a loop that goes through what is wrapped."""
    torch.manual_seed(0)
    rows = TensorDataset(torch.randn(8 * updates, 2), torch.randint(2, (8 * updates,)))
    loader, model, losses = DataLoader(rows, batch_size=8), nn.Linear(2, 2), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=updates)

    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, [parameter.detach().clone() for parameter in model.parameters()]


ENTRIES = {
    "begin_pass": ("rows::repeated-or-skipped", "gradients::cut-off"),
    "give": ("rows::repeated-or-skipped", "gradients::cut-off"),
    "end_pass": ("rows::repeated-or-skipped", "inputs::stale-batch"),
    "forward": ("gradients::cut-off", "groups::duplicate-parameters"),
    "loss": ("loss::constant", "schedule::decays-too-fast"),
    "backward": ("rows::evaluation-incomplete", "groups::duplicate-parameters"),
    "optimizer_made": ("saved::best-is-last", "gradients::not-cleared"),
    "step_begins": ("gradients::not-cleared", None),
    "step_ends": ("gradients::not-cleared", None),
    "is_sampled": ("gradients::not-cleared", None),
    "emit": ("gradients::not-cleared", None),
}
"""Methods of the monitor that instruments call; each with a check that needs what they tell, and one that does not:
none where steps are lost, by which all updates are counted."""


@pytest.mark.parametrize(("name", "lost", "kept"), [(name, *checks) for name, checks in ENTRIES.items()])
def test_the_script_goes_on_where_a_part_of_the_watch_fails(
    name: str, lost: str, kept: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **kwargs: Any) -> Any:
        raise IndexError("a fault of ours")

    losses, weights = trained()
    monkeypatch.setattr(Monitor, name, fails)
    with watch(raise_errors=False) as threads:
        watched_losses, watched_weights = trained()
    assert watched_losses == losses
    assert all(map(torch.equal, watched_weights, weights))
    assert threads.crashed[lost].startswith("the watch itself crashed: IndexError: a fault of ours (test_monitor.py:")
    assert threads.all_findings == []
    assert (threads.broken is None) is (kept is not None)
    if kept is not None:
        assert kept in threads.looked
        assert kept not in threads.crashed


def test_a_step_that_calls_a_closure_goes_on_where_the_watch_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any, **kwargs: Any) -> Any:
        raise IndexError("a fault of ours")

    def run() -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = nn.Linear(2, 2)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
        inputs, labels = torch.randn(8, 2), torch.randint(2, (8,))

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            return loss

        optimizer.step(closure)
        return [parameter.detach().clone() for parameter in model.parameters()]

    weights = run()
    monkeypatch.setattr(Monitor, "step_begins", fails)
    with watch(raise_errors=False) as threads:
        watched_weights = run()
    assert all(map(torch.equal, watched_weights, weights))
    assert threads.broken is not None


def test_a_module_that_cannot_be_wrapped_is_imported_all_the_same(tmp_path: Path) -> None:
    def patch(module: Any) -> None:
        raise AttributeError("a version without it")

    (tmp_path / "imported_while_watched.py").write_text("there = True\n")
    errors: list[Exception] = []
    patches = Patches(errors.append)
    sys.path.insert(0, str(tmp_path))
    try:
        patches.when_imported("imported_while_watched", patch)
        assert importlib.import_module("imported_while_watched").there
        patches.when_imported("imported_while_watched", patch)
    finally:
        patches.undo()
        sys.path.remove(str(tmp_path))
        sys.modules.pop("imported_while_watched", None)
    assert [f"{error}" for error in errors] == ["a version without it"] * 2


def test_two_parts_of_the_watch_may_wait_for_one_module(tmp_path: Path) -> None:
    (tmp_path / "imported_by_two.py").write_text("there = True\n")
    errors: list[Exception] = []
    patches, told = Patches(errors.append), list[str]()
    sys.path.insert(0, str(tmp_path))
    try:
        for each in ("one", "other"):
            patches.when_imported("imported_by_two", functools.partial(lambda name, _: told.append(name), each))
        importlib.import_module("imported_by_two")
    finally:
        patches.undo()
        sys.path.remove(str(tmp_path))
        sys.modules.pop("imported_by_two", None)
    assert (told, errors) == (["one", "other"], [])


def test_a_module_is_patched_that_somebody_has_only_looked_for_before(tmp_path: Path) -> None:
    (tmp_path / "looked_for.py").write_text("there = True\n")
    errors, told = list[Exception](), list[str]()
    patches = Patches(errors.append)
    sys.path.insert(0, str(tmp_path))
    try:
        patches.when_imported("looked_for", lambda module: told.append(module.__name__))
        for _ in range(2):
            assert importlib.util.find_spec("looked_for") is not None
        importlib.import_module("looked_for")
    finally:
        patches.undo()
        sys.path.remove(str(tmp_path))
        sys.modules.pop("looked_for", None)
    assert (told, errors) == (["looked_for"], [])


def test_nothing_found_is_not_said_where_the_watch_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Monitor, optimizer: torch.optim.Optimizer) -> None:
        raise IndexError("a fault of ours")

    monkeypatch.setattr(Monitor, "step_ends", fails)
    with pytest.raises(CannotTry, match=r"^\d+ checks: the watch itself crashed: IndexError"), watch(must_train=False):
        loop()


def test_what_was_found_before_the_watch_failed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    begins, seen = Monitor.step_begins, []

    def fails(self: Monitor, optimizer: torch.optim.Optimizer) -> None:
        seen.append(optimizer)
        if len(seen) == 5:
            raise IndexError("a fault of ours")
        begins(self, optimizer)

    monkeypatch.setattr(Monitor, "step_begins", fails)
    with pytest.raises(SilentBug, match="gradients::not-cleared"), watch():
        loop(clears=False)


def test_what_the_script_raises_is_no_fault_of_the_watch() -> None:
    model = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="does not require grad"), watch(must_train=False) as threads:
        model(torch.randn(4, 2)).detach().sum().backward()
    with pytest.raises(ValueError, match="Expected input batch_size"), watch(must_train=False) as threads:
        nn.functional.cross_entropy(model(torch.randn(4, 2)), torch.tensor([0, 1]))
    assert threads.broken is None


# Signals


class Budget(Exception):
    pass


def handler(number: int, frame: Any) -> None:
    raise Budget


class Handler:
    def __call__(self, number: int, frame: Any) -> None:
        raise Budget

    def method(self, number: int, frame: Any) -> None:
        raise Budget


@pytest.mark.parametrize("handle", [handler, Handler(), Handler().method])
def test_what_a_signal_handler_raises_goes_through_to_the_script(handle: Any) -> None:
    """Here the signal comes in the middle of a check, which must not swallow it, nor be blamed for it."""
    rings = a_check("Rings", Step, lambda event: signal.raise_signal(signal.SIGUSR1) if event.update == 2 else None)
    before = signal.signal(signal.SIGUSR1, handle)
    threads = Session(Options(checks=(rings,)), Locator())
    try:
        with pytest.raises(Budget), instrumented(threads):
            loop()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert threads.crashed == {}
    assert threads.first.updates_made == 1
    assert not threads.first.suspended.depth


def test_other_errors_are_of_no_signal_handler() -> None:
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(KeyError) as raised:
            raise KeyError
        assert not from_signal_handler(raised.value)
    finally:
        signal.signal(signal.SIGUSR1, before)


# Session


def in_threads(*work: Any) -> None:
    threads = [threading.Thread(target=each) for each in work]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def test_two_trainings_in_two_threads_are_two_loops() -> None:
    """One clears its gradients, the other does not; they take turns with every update."""
    turns = threading.Barrier(2, timeout=30)

    def training(clears: bool, updates: int) -> None:
        data = TensorDataset(torch.randn(4 * updates, 2), torch.arange(4 * updates) % 2)
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for inputs, labels in DataLoader(data, batch_size=4):
            turns.wait()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            turns.wait()
            loss.backward()
            turns.wait()
            optimizer.step()
            if clears:
                optimizer.zero_grad()

    with watch(raise_errors=False) as found:
        in_threads(lambda: training(True, 8), lambda: training(True, 8))
    assert found.findings == {}
    assert [each.updates_made for each in found.monitors] == [8, 8]
    with watch(raise_errors=False) as found:
        in_threads(lambda: training(True, 8), lambda: training(False, 8))
    assert list(found.findings) == ["gradients::not-cleared"]
    assert found.findings["gradients::not-cleared"].update == 2


def test_optimizers_that_the_main_thread_made_belong_to_the_loops_that_step_them() -> None:
    turns = threading.Barrier(2, timeout=30)
    models = [nn.Linear(2, 2), nn.Linear(2, 2)]

    def training(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for _ in range(8):
            turns.wait()
            loss = nn.functional.cross_entropy(model(torch.randn(4, 2)), torch.tensor([0, 1, 0, 1]))
            turns.wait()
            loss.backward()
            turns.wait()
            optimizer.step()
            turns.wait()
            optimizer.zero_grad()

    with watch(raise_errors=False) as found:
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.01) for model in models]
        in_threads(*(lambda i=i: training(models[i], optimizers[i]) for i in (0, 1)))
    assert found.findings == {}
    assert sorted(len(each.optimizers) for each in found.monitors) == [1, 1]


def test_a_module_without_parameters_makes_no_loop_of_a_thread() -> None:
    """A transform of the data, or a replica of DataParallel, is called in threads of its own."""
    with watch(raise_errors=False) as found:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(4):
            update(model, optimizer)
            in_threads(lambda: nn.ReLU()(torch.ones(2)))
    assert len(found.monitors) == 1


def test_a_thread_that_trains_alone_is_the_loop() -> None:
    """What the main thread made before is known, and what it does afterwards is the same loop's."""
    with watch(raise_errors=False) as found:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def train() -> None:
            for _ in range(4):
                update(model, optimizer)

        in_threads(train)
        update(model, optimizer)
    assert len(found.monitors) == 1
    assert found.updates_made == 5
    assert found.findings == {}


def test_a_thread_that_fetches_batches_is_a_part_of_the_loop() -> None:
    import queue

    batches: queue.Queue[Any] = queue.Queue(2)
    data = TensorDataset(torch.randn(32, 2), torch.arange(32) % 2)

    def fetch() -> None:
        for _ in range(2):
            for batch in DataLoader(data, batch_size=4, shuffle=True):
                batches.put(batch)
        batches.put(None)

    with watch(raise_errors=False) as found:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        threading.Thread(target=fetch, daemon=True).start()
        while (batch := batches.get()) is not None:
            nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert len(found.monitors) == 1
    assert found.updates_made == 16
    assert found.first._numbers["batch"] == 16


def test_checkpointing_in_a_backward_pass_is_no_call_of_its_own() -> None:
    from torch.utils.checkpoint import checkpoint

    calls: list[int] = []
    counts = a_check("Counts", Forward, lambda event: calls.append(event.number))

    def run() -> None:
        inner, outer = nn.Linear(2, 2), nn.Linear(2, 2)
        out = outer(torch.randn(2, 2))
        checkpoint(inner, out, use_reentrant=False).sum().backward()

    watched(counts, run=run)
    assert calls == [1, 2]


def test_an_optimizer_is_told_of_when_it_is_made() -> None:
    made: list[str] = []
    tells = a_check("Tells", OptimizerMade, lambda event: made.append(type(event.optimizer).__name__))

    def run() -> None:
        model = nn.Linear(2, 2)
        update(model, torch.optim.SGD(model.parameters(), lr=0.01))
        torch.optim.AdamW(model.parameters())

    watched(tells, run=run)
    assert made == ["SGD", "AdamW"]


def test_after_the_updates_that_were_asked_for_nothing_is_judged() -> None:
    """A script that catches everything goes on; every further step ends it again, and none is looked at."""
    from harness.watch.monitor import UpdateLimitReached

    seen: list[int] = []
    counts = a_check("Counts", BackwardBegins, lambda event: seen.append(event.number))
    threads = Session(Options(checks=(counts,), updates=2), Locator())
    ended = 0
    with instrumented(threads):
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(5):
            try:
                update(model, optimizer)
            except UpdateLimitReached:
                ended += 1
    threads.ends()
    assert ended == 4
    assert seen == [1, 2]
    assert threads.updates_made == 2


# What is found


def test_a_few_findings_of_a_check_are_kept_in_lines_of_their_own() -> None:
    lines = iter((1, 1, 2, 3, 4, 5))
    talks = a_check("Talks", Step, lambda step: Found("one", f"{step.number}", where=f"a.py:{next(lines)}"))
    threads = watched(talks, run=loop)
    assert [(each.where, each.observed) for each in threads.all_findings] == [
        ("a.py:1", "1"),
        ("a.py:2", "3"),
        ("a.py:3", "4"),
    ]
    assert [each.where for each in threads.findings.values()] == ["a.py:1"]


# Lines


def test_an_argument_is_found_by_its_name_where_there_is_one(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "settings = {\n    'in_a_mapping': 5,\n}\nf(\n    first_of_all=1,\n    said_twice=2,\n)\n"
        "g(said_twice=3)\nf(**settings)\n"
    )
    locator = Locator(script)
    assert locator.argument("in_a_mapping") == f"{script}:2"
    assert locator.argument("first_of_all") == f"{script}:5"
    assert locator.argument("said_twice") is None
    assert locator.argument("said_nowhere") is None


def test_files_that_do_not_have_the_name_of_an_argument_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.watch.locate.ast", None)
    assert Locator().argument("said_" + "nowhere_at_all") is None


def test_a_loss_is_told_once_where_torch_hands_its_call_on() -> None:
    """With a default device a mode calls the function again, within the script's own call."""
    told = []

    class Losses(Recogniser):
        def on_loss(self, event: LossCall) -> None:
            told.append(event.function)

    threads = Session(Options(sections=(Losses,)), Locator())
    model, labels = nn.Linear(4, 2), torch.tensor([0, 1])
    with instrumented(threads), torch.device("cpu"):
        nn.functional.cross_entropy(model(torch.randn(2, 4)), labels)
        nn.functional.mse_loss(model(torch.randn(2, 4)), torch.randn(2, 2))
    assert told == ["cross_entropy", "mse_loss"]
