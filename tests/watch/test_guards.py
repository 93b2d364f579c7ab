"""Nothing of ours raises in the script's code: whatever is put in the place of something of a library's is guarded."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import harness
from harness.watch import checks_of, watch
from harness.watch.events import (
    Backward,
    Batch,
    Clip,
    End,
    Event,
    Forward,
    LossCall,
    Scored,
    Seeded,
    Step,
    StepBegins,
    Thresholded,
    ZeroGrad,
    resting_on,
)
from harness.watch.guards import Guard
from harness.watch.instrument import INSTRUMENTS, instrumented, permutations
from harness.watch.instrument.arithmetic import COMBINATIONS
from harness.watch.instrument.patches import Call, Patches
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options
from harness.watch.session import Session

PACKAGE = Path(harness.__file__).parent


class Fault(Exception):
    """What an instrument of ours raises in these tests."""


class Theirs(Exception):
    """What the script's own code raises in these tests."""


@pytest.fixture(autouse=True)
def _no_debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_DEBUG", raising=False)


# One guard


def faulty(*_: Any, **__: Any) -> Any:
    raise Fault("ours")


def test_an_instrument_that_has_raised_is_off() -> None:
    told: list[Exception] = []
    guard = Guard(told.append)
    hook = guard.guarded(faulty)
    assert (hook(), hook()) == (None, None)
    with guard:
        raise Fault("in a block")
    assert [str(each) for each in told] == ["ours", "in a block"]
    assert guard.off


def test_what_ends_a_script_goes_through_a_guard() -> None:
    guard = Guard(faulty)
    for error in (KeyboardInterrupt, SystemExit):
        with pytest.raises(error), guard:
            raise error
    assert not guard.off


def test_under_debug_an_instrument_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_DEBUG", "1")
    guard = Guard(lambda error: None)
    with pytest.raises(Fault):
        guard.guarded(faulty)()
    with pytest.raises(Fault), guard:
        faulty()


def test_a_failure_that_cannot_be_named_is_not_the_scripts_either() -> None:
    guard = Guard(faulty)
    assert guard.guarded(faulty)() is None
    assert guard.off


class Owner:
    def method(self, *args: Any, **kwargs: Any) -> Any:
        return args, kwargs


class Wrong:
    def method(self, *args: Any, **kwargs: Any) -> Any:
        raise Theirs(args)


def before(original: Call, args: Any, kwargs: Any) -> Any:
    raise Fault


def after(original: Call, args: Any, kwargs: Any) -> Any:
    original(*args, **kwargs)
    raise Fault


def finally_(original: Call, args: Any, kwargs: Any) -> Any:
    try:
        return original(*args, **kwargs)
    finally:
        raise Fault


def reading(original: Call, args: Any, kwargs: Any) -> Any:
    original.reads(args[1])
    raise Fault


@pytest.fixture
def failures() -> list[Exception]:
    return []


@pytest.fixture
def patches(failures: list[Exception]) -> Iterator[Patches]:
    made = Patches(failures.append)
    yield made
    made.undo()


@pytest.mark.parametrize("wrapper", [before, after, finally_])
def test_the_original_is_called_once_and_what_it_gives_or_raises_is_the_scripts(
    wrapper: Any, patches: Patches, failures: list[Exception]
) -> None:
    patches.wrap(Owner, "method", wrapper)
    assert Owner().method(1, two=2) == ((1,), {"two": 2})
    assert [type(each) for each in failures] == [Fault]
    failures.clear()
    again = patches.guarded_by(Guard(failures.append))
    again.wrap(Wrong, "method", wrapper)
    with pytest.raises(Theirs, match="1"):
        Wrong().method(1)
    # One that raises before a call that is wrong by itself has failed by what was wrong about it.
    assert [type(each) for each in failures] == ([Fault] if wrapper is finally_ else [])


def test_what_was_read_ahead_of_the_original_is_given_to_it(patches: Patches, failures: list[Exception]) -> None:
    patches.wrap(Owner, "method", reading)
    assert Owner().method(iter([1, 2])) == (([1, 2],), {})
    assert len(failures) == 1


def test_what_an_iterator_of_the_scripts_raises_is_the_scripts(patches: Patches, failures: list[Exception]) -> None:
    def gives() -> Iterator[int]:
        yield 1
        raise Theirs

    patches.wrap(Owner, "method", reading)
    with pytest.raises(Theirs):
        Owner().method(gives())
    assert failures == []


class Settable:
    @property
    def number(self) -> int:
        return 1

    @number.setter
    def number(self, value: int) -> None:
        self.was_set = value


def test_looks_before_and_after_and_setters(patches: Patches, failures: list[Exception]) -> None:
    one, other, third, fourth = (patches.guarded_by(Guard(failures.append)) for _ in range(4))
    one.before(Owner, "method", faulty)
    other.after(Owner, "method", faulty)
    third.after_operator(Owner, "method", faulty)
    assert Owner().method(1, 2) == ((1, 2), {})
    fourth.wrap_setter(Settable, "number", before)
    it = Settable()
    it.number = 7
    assert (it.number, it.was_set, len(failures)) == (1, 7, 4)
    it.number = 8
    Owner().method(1, 2)
    assert (it.was_set, len(failures)) == (8, 4)  # each is off


def test_a_finder_that_fails_ends_no_import(
    monkeypatch: pytest.MonkeyPatch, patches: Patches, failures: list[Exception]
) -> None:
    monkeypatch.delitem(importlib.import_module("sys").modules, "colorsys", raising=False)
    patches.when_imported("colorsys", faulty)
    monkeypatch.setattr("harness.watch.instrument.patches.find_spec", faulty)
    assert importlib.import_module("colorsys").rgb_to_hsv is not None
    assert len(failures) == 1


# All that is replaced


@contextmanager
def recorded() -> Iterator[list[tuple[Any, str, Any]]]:
    """What is replaced meanwhile: the owner, the name, and what is there then."""
    found: list[tuple[Any, str, Any]] = []
    put = Patches._put

    def recording(self: Patches, owner: Any, name: str, value: Any) -> None:
        found.append((owner, name, value))
        put(self, owner, name, value)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Patches, "_put", recording)
        yield found


def session() -> Session:
    """With a few checks, which need all operators."""
    few = ("loss::broadcast", "loss::left-out", "metrics::broadcast", "metrics::ranked-by-classes")
    return Session(Options(checks_of(few), every=1), Locator())


def all_replaced() -> list[tuple[Any, str]]:
    for each in INSTRUMENTS:
        if each.module is not None:
            with suppress(ImportError):
                importlib.import_module(each.module)
    with recorded() as found, instrumented(session()):
        pass
    return list({id(value): (owner, name) for owner, name, value in reversed(found)}.values())  # a second name is none


def stub(of: Any, result: Any, calls: list[Any]) -> Any:
    """In the place of an original, which it looks like."""

    def standing_in(*args: Any, **kwargs: Any) -> Any:
        calls.append((args, kwargs))
        if isinstance(result, Exception):
            raise result
        return result

    function = of.__func__ if isinstance(of, classmethod) else of
    for name in ("__name__", "__module__", "__doc__"):
        with suppress(AttributeError, TypeError):
            setattr(standing_in, name, getattr(function, name))
    with suppress(TypeError, ValueError):
        standing_in.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return classmethod(standing_in) if isinstance(of, classmethod) else standing_in


ROWS = torch.arange(8.0)
GIVEN: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("__eq__", "eq", "__ne__", "ne"), (ROWS, ROWS)),
    **dict.fromkeys(("__gt__", "__ge__", "gt", "ge"), (ROWS, 0.5)),
    **dict.fromkeys(("__sub__", "sub", "__isub__"), (ROWS, ROWS)),
    **dict.fromkeys(("abs", "__abs__", "square", "pow", "__pow__"), (ROWS,)),
    "manual_seed": (1,),
    "seed": (1,),
    "showwarning": ("message", UserWarning, str(permutations.__file__), 1),
    "callHandlers": (None, None),
}
"""What each is called with, by its name; all others with objects that nothing can be done with."""

A_TENSOR = (torch.ones((), requires_grad=True), [torch.ones((), requires_grad=True)])
RESULTS: dict[str, Any] = {
    **dict.fromkeys(("__eq__", "eq", "__ne__", "ne", "__sub__", "sub", "__isub__"), ROWS),
    **dict.fromkeys(COMBINATIONS, A_TENSOR[0]),
    "fork": 0,
    "forkpty": (0, 0),
    "from_pretrained": ("model", {}),
}
"""What the original gives."""

QUIET = {
    "DataLoaderShard.__iter__": "what it gives is gone through later: test_a_loader_of_accelerate",
    "DataLoaderDispatcher.__iter__": "as DataLoaderShard's",
    "Module.parameters": "it only finds out whether a script has a call of some forward",
    "Module.named_parameters": "as Module.parameters",
    "os.fork": "nothing in it can fail but what sets an attribute",
    "os.forkpty": "as os.fork",
}
"""Those whose own part does not fail by the session's, and why that is right."""


class Broken(Session):
    """A session of which everything that an instrument asks fails."""

    def current(self) -> Monitor | None:
        raise Fault("current")

    calling_a_model = current

    def stepping(self, optimizer: Any) -> Monitor | None:
        raise Fault("stepping")

    @property
    def leaving(self) -> Any:
        raise Fault("leaving")

    @leaving.setter
    def leaving(self, value: Any) -> None: ...


def named(owner: Any, name: str) -> str:
    return f"{getattr(owner, '__name__', owner)}.{name}"


class NoStack(Locator):
    def stack(self, frame: Any = None) -> Any:
        raise Fault("stack")


def broken_session() -> Session:
    threads = session()
    threads.__class__ = Broken
    threads.locator = NoStack()
    return threads


def called_while_broken(owner: Any, name: str, result: Any, calls: list[Any]) -> tuple[Any, Session]:
    """What is given where an original is replaced that is stood in for, by a session that fails."""
    args = GIVEN.get(name, (object(), object()))
    with pytest.MonkeyPatch.context() as patched:
        threads = broken_session()
        patched.setattr(owner, name, stub(inspect.getattr_static(owner, name), result, calls))
        with instrumented(threads, hooked=False):
            replaced = vars(owner)[name]
            function = replaced.__func__ if isinstance(replaced, classmethod) else replaced
            try:
                return function(*args), threads
            finally:
                calls.append(args)


def test_every_replacement_gives_what_the_original_gives_whatever_fails_in_it() -> None:
    """Each one that is there: who adds one gives it a way to be called in the tables above, where it needs one."""
    silent = []
    replaced = all_replaced()
    assert len(replaced) > 100
    for owner, name in replaced:
        result, calls = RESULTS.get(name, object()), list[Any]()
        found, threads = called_while_broken(owner, name, result, calls)
        assert found is result or name == "__iter__", named(owner, name)
        args = calls.pop()
        if name != "__iter__":
            assert [call[0] for call in calls] == [args], named(owner, name)
        if not threads.crashed and not threads.notes:
            silent.append(named(owner, name))
    assert sorted(silent) == sorted(QUIET)


def test_every_replacement_raises_what_the_original_raises() -> None:
    for owner, name in all_replaced():
        error, calls = Theirs(name), list[Any]()
        if name == "__iter__":
            continue
        with pytest.raises(Theirs) as raised:
            called_while_broken(owner, name, error, calls)
        assert raised.value is error
        assert len(calls) == 2, named(owner, name)  # its one call, and what it was given


# One that fails is left out alone


def trained(updates: int = 6, at: int = 0, then: Callable[[], object] = lambda: None) -> list[float]:
    """Losses of a small training that is right, with an evaluation; ``then`` is called before one of its updates."""
    torch.manual_seed(0)
    rows = torch.utils.data.TensorDataset(torch.randn(48, 4), torch.randint(2, (48,)))
    loader, model = torch.utils.data.DataLoader(rows, batch_size=8), nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, batches = [], itertools.chain.from_iterable(itertools.repeat(loader))
    for number, (inputs, labels) in zip(range(updates), batches, strict=False):
        if number == at:
            then()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    with torch.no_grad():
        losses += [(model(inputs).argmax(-1) == labels).float().mean().item() for inputs, labels in loader]
    return losses


KINDS = sorted({each.tells for each in INSTRUMENTS if each.tells}, key=str)


@pytest.mark.parametrize("tells", KINDS, ids=lambda tells: tells[0].__name__)
def test_nothing_is_found_in_what_is_right_where_an_instrument_has_failed(tells: tuple[type[Event], ...]) -> None:
    """What was lost is not taken for what did not happen."""
    losses = trained()
    with watch(raise_errors=False) as threads:
        assert trained(at=3, then=lambda: threads.fails(Fault(), tells)) == losses
    assert threads.all_findings == []
    silent = (
        {check.id for check in threads.first.checks} - set(threads.looked) - set(threads.lacking) - set(threads.crashed)
    )
    assert silent == set()


def test_clipping_that_fails_takes_its_checks_with_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = trained()
    monkeypatch.setattr("harness.watch.instrument.optimizers._is_used_up", faulty)
    with watch(raise_errors=False) as threads:
        assert trained() == losses
    assert "the watch itself crashed: Fault: ours" in threads.crashed["gradients::clips-nothing"]
    assert "gradients::cut-off" in threads.looked.keys() - set(threads.crashed)
    assert threads.broken is None


def test_what_was_kept_of_what_failed_is_let_go() -> None:
    threads = session()
    monitor: Any = threads.first
    monitor.batch, monitor.passes, monitor.forwards, monitor.losses = object(), [object()], [object()], [object()]
    monitor.in_backward, monitor.in_step = True, object()
    threads.fails(Fault(), (Batch, Forward, LossCall, Backward, StepBegins))
    assert (monitor.batch, monitor.passes, monitor.forwards, monitor.losses) == (None, [], [], [])
    assert (monitor.in_backward, monitor.in_step) == (False, None)


def test_what_no_check_needs_is_noted() -> None:
    threads = Session(Options(checks_of(["loss::broadcast"])), Locator())
    threads.fails(Fault("ours"), (Seeded,))
    assert threads.crashed == {}
    assert threads.notes == ["the watch itself crashed: Fault: ours (update 1)"]


def test_a_loop_that_begins_after_the_failure_misses_the_same() -> None:
    threads = Session(Options(checks_of(["gradients::clips-nothing"])), Locator())
    threads.fails(Fault("ours"), (Clip,))
    threads._trains = threading.Thread(target=time.sleep, args=(1,))
    threads._trains.start()
    other = threads._assigned(threading.get_ident())
    assert other is not threads.first
    assert other.crashed == threads.first.crashed != {}


def test_what_rests_on_what() -> None:
    assert resting_on([Clip]) == {Clip}
    assert resting_on([Thresholded]) == {Thresholded}
    assert {Scored, Thresholded} < resting_on([Forward])
    assert Forward in resting_on([LossCall])
    assert resting_on([Batch]) == {Batch}
    assert {Forward, LossCall, Backward, Step} < resting_on([Batch], in_part=True)
    lost = resting_on([Step])
    assert {ZeroGrad, Backward, Batch} < lost
    assert lost.isdisjoint({Seeded, End})


def test_an_error_that_cannot_be_said_is_named_by_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise Theirs

    threads = session()
    threads.fails(Mute(), (Clip,))
    assert threads.notes == ["the watch itself crashed: Mute (update 1)"]


# What the source must look like


def modules() -> Iterator[tuple[Path, ast.Module]]:
    """The modules that may put something on what is the script's."""
    for part in ("watch", "describe", "compare", "starts", "callbacks"):
        for path in sorted((PACKAGE / part).rglob("*.py")):
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def called(node: ast.AST) -> str:
    """The last name of the function that is called."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


ON_COPIES = {
    "stacks.py": "a copy of the model, inside the watch",
    "visible_tokens.py": "a copy of the model, inside the watch",
    "windows.py": "guarded by its own except: the windows end as a whole",
}
"""Files that put hooks on something else than what is the script's."""


def test_every_hook_is_guarded() -> None:
    unguarded, seen = [], 0
    for path, tree in modules():
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            hooks = [node for node in ast.walk(function) if _puts_a_hook(node)]
            seen += len(hooks)
            guards = any(called(node) in ("guarded", "_reaches", "step_hooks") for node in ast.walk(function))
            if hooks and not guards and path.name not in ON_COPIES:
                unguarded.append(f"{path.name}:{function.lineno}")
    assert unguarded == []
    assert seen > 10


def _puts_a_hook(node: ast.AST) -> bool:
    name = called(node) or getattr(node, "attr", "")
    return (name.startswith("register_") and name.endswith("hook")) or name == "addaudithook"


def test_nothing_is_put_in_the_place_of_something_but_by_a_guarded_way() -> None:
    raw = []
    for path, tree in modules():
        for node in ast.walk(tree):
            if called(node) in ("_put", "setattr") and path.name != "patches.py":
                raw.append(path.name)
    assert raw == ["data.py"]  # which takes something of its own away again


def test_an_instrument_says_all_that_it_tells() -> None:
    """What is made of an event's class in its file, and what the methods of the monitor tell that are called there."""
    told_by = methods_of_the_monitor()
    for module in {inspect.getmodule(each.install) for each in INSTRUMENTS}:
        assert module is not None
        nodes = list(ast.walk(ast.parse(inspect.getsource(module))))
        names = {called(node) for node in nodes}
        asked = {
            node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "monitor"
        }
        declared = {kind.__name__ for each in module.INSTRUMENTS for kind in each.tells}
        guards = [node for node in nodes if isinstance(node, ast.Call) and called(node) == "guard"]
        declared |= {ast.unparse(argument) for guard in guards for argument in guard.args}
        events = {name for name in names if inspect.isclass(kind := getattr(module, name, None)) and is_event(kind)}
        told = events.union(*(told_by[name] for name in asked & told_by.keys()))
        assert told - declared == set(), module.__name__


def is_event(kind: Any) -> bool:
    return issubclass(kind, Event)


NOT_TOLD = {"_end_own_update", "_losses_of", "emit"}
"""What ends the script's own writing, whichever event comes next: its steps are told by what sees it write; losses by
hand are made for the event of the backward pass, and not told."""


def methods_of_the_monitor() -> dict[str, set[str]]:
    """The names of the events that its methods tell, themselves or by others of them."""
    (tree,) = ast.parse(inspect.getsource(Monitor)).body
    assert isinstance(tree, ast.ClassDef)
    names = {each.name: {called(n) for n in ast.walk(each)} for each in tree.body if isinstance(each, ast.FunctionDef)}
    events = importlib.import_module("harness.watch.events")

    def told(name: str, seen: set[str]) -> set[str]:
        found = {each for each in names[name] if inspect.isclass(k := getattr(events, each, None)) and is_event(k)}
        for other in names[name] & names.keys() - seen - NOT_TOLD:
            found |= told(other, seen | {other})
        return found

    return {name: told(name, {name}) for name in names}


# What is the script's own


class Draws(torch.utils.data.Sampler[int]):
    """A sampler whose length draws, or cannot be told."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def __iter__(self) -> Iterator[int]:
        yield from range(4)

    def __len__(self) -> int:
        if self.error is not None:
            raise self.error
        return 4 + 0 * int(torch.randint(9, ())) + 0 * random.randrange(9)


def passed(sampler: Draws) -> tuple[list[float], float, float]:
    torch.manual_seed(0)
    random.seed(0)
    rows = torch.utils.data.TensorDataset(torch.arange(4.0))
    given = [float(batch) for (batch,) in torch.utils.data.DataLoader(rows, sampler=sampler)]
    return given, torch.rand(()).item(), random.random()


@pytest.mark.parametrize("error", [None, ZeroDivisionError(), Theirs()])
def test_the_length_of_a_sampler_of_the_scripts_changes_nothing(error: Exception | None) -> None:
    alone = passed(Draws(error))
    threads = session()
    with instrumented(threads):
        assert passed(Draws(error)) == alone
    assert (threads.crashed, threads.notes) == ({}, [])


class Answer:
    """An output of a model's that computes what it is asked for."""

    def __init__(self, said: torch.Tensor) -> None:
        self.said, self.asked = said, 0

    @property
    def logits(self) -> torch.Tensor:
        self.asked += 1
        raise Theirs

    loss = logits

    def __getattr__(self, name: str) -> Any:
        raise Theirs


class Answers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.read = 0

    @property
    def config(self) -> Any:
        self.read += 1
        return None

    def forward(self, rows: torch.Tensor) -> Answer:
        return Answer(self.inner(rows))


def test_properties_of_the_scripts_models_and_outputs_are_not_asked() -> None:
    threads, model = session(), Answers()
    with instrumented(threads):
        answer = model(torch.randn(4, 2))
        answer.said.sum().backward()
    assert (answer.asked, model.read, threads.crashed, threads.notes) == (0, 0, {}, [])


class Speaks:
    said = 0

    def __str__(self) -> str:
        type(self).said += 1
        return "0.5"


class Labels(list[int]):
    gone_through = 0

    def __iter__(self) -> Iterator[int]:
        type(self).gone_through += 1
        return super().__iter__()


def test_what_is_logged_or_scored_is_asked_as_often_as_alone() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    logger = logging.Logger("theirs", logging.INFO)  # without a handler
    threads = Session(Options(checks_of(["metrics::other-than-named"])), Locator())
    with instrumented(threads):
        logger.info("accuracy %s", Speaks())
        logger.info(Speaks())
        assert metrics.accuracy_score([0, 1], [0, 1]) == 1
        metrics.accuracy_score(Labels([0, 1]), [0, 1])
    watched, Labels.gone_through = Labels.gone_through, 0
    metrics.accuracy_score(Labels([0, 1]), [0, 1])
    assert (Speaks.said, watched, threads.crashed, threads.notes) == (0, Labels.gone_through, {}, [])


def test_a_generator_is_clipped_once_and_what_it_raises_is_the_scripts() -> None:
    def gives(error: Exception | None) -> Iterator[nn.Parameter]:
        yield weight
        if error is not None:
            raise error

    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.full((2,), 8.0)
    threads = session()
    with instrumented(threads):
        nn.utils.clip_grad_norm_(gives(None), 1.0)
        with pytest.raises(Theirs):
            nn.utils.clip_grad_norm_(gives(Theirs()), 1.0)
        with pytest.raises(Theirs):
            torch.autograd.backward(each.sum() for each in gives(Theirs()))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="a norm"):
            nn.utils.clip_grad_norm_([weight], "a norm")  # type: ignore[arg-type]
    assert weight.grad.norm().item() == pytest.approx(1.0, abs=1e-4)
    assert (threads.crashed, threads.notes) == ({}, [])


def test_a_threshold_of_what_lies_on_two_devices() -> None:
    model, here = nn.Linear(2, 1, device="meta"), nn.Linear(2, 1)
    threads = session()
    with instrumented(threads), torch.no_grad():
        model(torch.randn(8, 2, device="meta"))
        assert (torch.rand(8, 1) > 0.5).shape == (8, 1)
        assert (torch.rand(8, 1) == torch.rand(8, 1)).shape == (8, 1)
        here(torch.randn(8, 2))
        assert (torch.rand(8, 1, device="meta") > 0.5).is_meta
    assert (threads.crashed, threads.notes) == ({}, [])


def test_a_loader_of_accelerate_goes_on_where_its_instrument_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    loaders = pytest.importorskip("accelerate.data_loader")
    threads = Session(Options(checks_of(["rows::repeated-or-skipped"])), Locator())
    with instrumented(threads):
        monkeypatch.setattr(Monitor, "give", faulty)
        loader = loaders.DataLoaderShard(torch.utils.data.TensorDataset(torch.arange(6.0)), batch_size=2)
        assert [rows.tolist() for (rows,) in loader] == [[0, 1], [2, 3], [4, 5]]
    assert "Fault: ours" in threads.crashed["rows::repeated-or-skipped"]
