"""Windows: a run that is watched a few updates at a time goes on as if nobody looked, and right ones raise no alarm."""

from __future__ import annotations

import gc
import logging
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks
from torch.utils.data import DataLoader, TensorDataset

from harness.errors import CannotTry
from harness.findings import Finding
from harness.torch_objects import anything_compiled, random_state
from harness.watch import watch, windows
from harness.watch.check import Check
from harness.watch.instrument import is_in_use
from harness.watch.instrument.data import _Indices, _Remembering
from harness.watch.windows import FIRST_WINDOW, LATER, UNWATCHED_UPDATES, Cost, Windows, judging
from tests.watch.test_watch import _looked_at

UPDATES = 60
BUG_FROM = FIRST_WINDOW + 2
"""The update from which on a bug is there: after the first window."""


class AdamW(torch.optim.AdamW):
    """As torch's, which it calls, until it gets a fault."""

    fault: str | None = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        if self.fault == "does nothing":
            return None
        if self.fault == "decays in the gradient":
            for p in self.param_groups[0]["params"]:
                p.grad.add_(p, alpha=self.param_groups[0]["weight_decay"])
        return super().step(closure)


class Loop:
    """A right loop; ``at(place, update)`` may change it."""

    scaler: torch.amp.GradScaler

    def __init__(self, at: Callable[[Loop, str], None] = lambda loop, place: None) -> None:
        torch.manual_seed(3)
        random.seed(3)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
        self.optimizer = AdamW(self.model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.ConstantLR(self.optimizer, 1.0)
        self.data = TensorDataset(torch.randn(80, 4), torch.arange(80) % 2)
        self.update, self.losses, self.at = 0, list[float](), at
        self.clears, self.steps = True, True
        self.loss_of: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = nn.functional.cross_entropy

    @property
    def first(self) -> nn.Linear:
        layer = self.model[0]
        assert isinstance(layer, nn.Linear)
        return layer

    def run(self, updates: int = UPDATES) -> Loop:
        while self.update < updates:
            for inputs, labels in DataLoader(self.data, batch_size=4, shuffle=True):
                self.at(self, "batch")
                loss = self.loss_of(self.model(inputs), labels)
                loss.backward()
                self.at(self, "backward")
                if self.steps:
                    self.optimizer.step()
                    self.scheduler.step()
                if self.clears:
                    self.optimizer.zero_grad()
                self.losses.append(loss.item())
                self.update += 1
                self.at(self, "update")
                if self.update == updates:
                    break
        return self

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Loop)
        pairs = zip(self.model.parameters(), other.model.parameters(), strict=True)
        return self.losses == other.losses and all(torch.equal(p, q) for p, q in pairs)

    __hash__ = None  # type: ignore[assignment]


def watched(loop: Loop, updates: int = UPDATES, **options: Any) -> Windows:
    told: list[Finding] = []
    watching = Windows(told.append, **{"apart": 2} | options)
    watching.begin()
    try:
        loop.run(updates)
    finally:
        watching.end()
    assert told == list(watching.findings.values())
    return watching


def test_a_right_loop_is_watched_in_windows_and_changes_by_no_bit() -> None:
    alone = Loop().run()
    after = random_state()
    loop = Loop()
    watching = watched(loop)
    assert loop == alone
    assert str(random_state()) == str(after)
    assert watching.findings == {}
    assert watching.updates == UPDATES, "the class that calls its base's step() makes one"
    assert watching.windows == 1 + (UPDATES - FIRST_WINDOW + LATER) // (LATER + 2)


def test_between_windows_nothing_is_there_but_two_hooks() -> None:
    """Of torch's attributes, of the iterator that the window was opened in, and after the end not even these."""
    Loop().run(2)  # the first step of an optimizer imports what replaces torch.manual_seed
    before, finders = dict(_looked_at()), list(sys.meta_path)
    places = []

    def look(loop: Loop, place: str) -> None:
        replaced = {name for name, value in _looked_at() if value is not before.get(name)}
        at_rest = place == "batch" and loop.update == FIRST_WINDOW + 2
        mine = [each for each in gc.get_objects() if type(each) in (_Indices, _Remembering)] if at_rest else []
        places.append((place, loop.update, bool(replaced), is_in_use(), len(mine), sys.meta_path == finders))

    watched(Loop(look), 30, apart=8)
    for place, update, replaced, in_use, left, same_finders in places:
        open_now = update < FIRST_WINDOW or update >= FIRST_WINDOW + 8
        assert (replaced, in_use, same_finders) == (open_now, open_now, not open_now), (place, update)
        assert left == 0
    assert not _global_optimizer_pre_hooks
    assert not _global_optimizer_post_hooks
    assert dict(_looked_at()) == before


@pytest.mark.parametrize("given", [{}, {"select": ["loss::not-finite"]}])
def test_operators_are_replaced_in_the_first_window_alone_and_where_a_check_needs_them(given: dict[str, Any]) -> None:
    before, replaced = dict(vars(torch.Tensor)), list[tuple[int, str]]()

    def look(loop: Loop, place: str) -> None:
        now = vars(torch.Tensor)
        replaced.extend((loop.update, name) for name in now if now[name] is not before.get(name))

    Loop().run(2)
    watching = watched(Loop(look), 40, apart=2, **given)
    assert watching.windows > 2
    names = {name for update, name in replaced}
    assert max(update for update, _ in replaced) <= FIRST_WINDOW
    assert {"__gt__", "abs", "pow"}.isdisjoint(names)
    assert ("__sub__" in names) is (not given)


def _in_eval_mode(loop: Loop, place: str) -> None:
    loop.model.train(loop.update < BUG_FROM)


def _not_cleared(loop: Loop, place: str) -> None:
    loop.clears = loop.update < BUG_FROM


def _not_finite(loop: Loop, place: str) -> None:
    if loop.update == BUG_FROM and place == "batch":
        loop.first.weight.data.fill_(float("nan"))


def _lost(loop: Loop, place: str) -> None:
    if loop.update >= BUG_FROM and place == "backward":
        loop.optimizer.zero_grad()


def _clipped_late(loop: Loop, place: str) -> None:
    loop.clears = False
    if place == "update":
        if loop.update >= BUG_FROM:
            nn.utils.clip_grad_norm_(loop.model.parameters(), 1.0)
        loop.optimizer.zero_grad()


def _decayed(loop: Loop, place: str) -> None:
    if loop.update >= BUG_FROM and place == "batch":
        loop.optimizer.param_groups[0].update(lr=0.5, weight_decay=1.0)


def _by_hand(loop: Loop, place: str) -> None:
    if loop.update >= BUG_FROM and place == "update":
        with torch.no_grad():
            loop.model[2].weight += 0.01  # type: ignore[operator, assignment]


def _frozen(loop: Loop, place: str) -> None:
    weight = loop.first.weight
    if loop.update >= BUG_FROM and place == "update":
        weight.requires_grad_(False).grad = torch.zeros_like(weight)


def _made_again(loop: Loop, place: str) -> None:
    if loop.update >= BUG_FROM and place == "batch":
        loop.optimizer = AdamW(loop.model.parameters(), lr=1e-2)


def _step_of_another_formula(loop: Loop, place: str) -> None:
    loop.optimizer.param_groups[0]["weight_decay"] = 0.1
    loop.optimizer.fault = "decays in the gradient" if loop.update >= BUG_FROM else None


def _clipped_in_part(loop: Loop, place: str) -> None:
    """Two micro-batches make an update, and each is clipped."""
    if loop.update >= BUG_FROM and place == "backward":
        loop.steps = loop.clears = loop.update % 2 == 1
        nn.utils.clip_grad_norm_(loop.model.parameters(), 0.1)


def _clipped_while_scaled(loop: Loop, place: str) -> None:
    if loop.update < BUG_FROM:
        return
    if place == "batch":
        loop.scaler = torch.amp.GradScaler("cpu")
        loop.loss_of = lambda output, labels: loop.scaler.scale(nn.functional.cross_entropy(output, labels))
    elif place == "backward":
        nn.utils.clip_grad_norm_(loop.model.parameters(), 0.1)
        loop.scaler.unscale_(loop.optimizer)


def _clips_nothing(loop: Loop, place: str) -> None:
    if loop.update >= BUG_FROM and place == "backward":
        parameters = loop.model.parameters()
        list(parameters)
        nn.utils.clip_grad_norm_(parameters, 1.0)


def _freezes_nothing(loop: Loop, place: str) -> None:
    if loop.update == BUG_FROM and place == "batch":
        loop.first.requires_grad = False  # type: ignore[assignment]


def _unchanged(loop: Loop, place: str) -> None:
    loop.optimizer.fault = "does nothing" if loop.update >= BUG_FROM else None


def _broadcast(loop: Loop, place: str) -> None:
    if loop.update >= BUG_FROM:
        loop.loss_of = lambda output, labels: nn.functional.mse_loss(output[:, :1], labels.float())


def _kept(loop: Loop, place: str) -> None:
    if loop.update == BUG_FROM and place == "batch":
        kept: list[torch.Tensor] = []

        def loss_of(output: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            kept.append(nn.functional.cross_entropy(output, labels))
            return kept[-1]

        loop.loss_of = loss_of


def _rounded(loop: Loop, place: str) -> None:
    if loop.update == BUG_FROM and place == "batch":
        loop.model.to(torch.bfloat16)
        loop.optimizer.state.clear()
        loop.optimizer.param_groups[0]["lr"] = 1e-4
        loop.model.register_forward_pre_hook(lambda module, given: (given[0].bfloat16(),))


def _unscaled_twice(loop: Loop, place: str) -> None:
    if loop.update >= BUG_FROM and place == "backward":
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(torch.zeros(1))
        scaler.unscale_(loop.optimizer)


def _stepped_without_the_scaler(loop: Loop, place: str) -> None:
    if loop.update >= BUG_FROM and place == "batch":
        scaler = torch.amp.GradScaler("cpu")
        loop.loss_of = lambda output, labels: scaler.scale(nn.functional.cross_entropy(output, labels))


def _emptied(loop: Loop, place: str) -> None:
    if loop.update >= BUG_FROM and place == "batch":
        loop.optimizer.state.clear()


BUGS: dict[str, Callable[[Loop, str], None]] = {
    "gradients::clipped-in-part": _clipped_in_part,
    "gradients::clipped-while-scaled": _clipped_while_scaled,
    "gradients::clips-nothing": _clips_nothing,
    "gradients::lost": _lost,
    "gradients::misplaced-clipping": _clipped_late,
    "gradients::not-cleared": _not_cleared,
    "gradients::not-scaled": _unscaled_twice,
    "gradients::not-unscaled": _stepped_without_the_scaler,
    "groups::decay-too-strong": _decayed,
    "loss::broadcast": _broadcast,
    "loss::not-finite": _not_finite,
    "memory::graphs-kept": _kept,
    "mode::training-in-eval-mode": _in_eval_mode,
    "optimizer::made-again": _made_again,
    "optimizer::state-emptied": _emptied,
    "parameters::freezes-nothing": _freezes_nothing,
    "parameters::frozen-changed": _frozen,
    "parameters::modified-outside-optimizer": _by_hand,
    "parameters::unchanged": _unchanged,
    "update::not-as-defined": _step_of_another_formula,
    "update::rounded-away": _rounded,
}
"""By the check that must find it, a bug that the loop gets after its first window."""


SHOWN_BY_OTHERS = {"parameters::unchanged": ["update::not-as-defined"]}
"""By a check, those that see its bug too."""


def test_each_check_of_later_windows_has_a_bug() -> None:
    assert BUGS.keys() == judging("all")


@pytest.mark.parametrize("check", BUGS)
def test_a_bug_that_comes_later_is_found_in_a_window(check: str) -> None:
    found = watched(Loop(BUGS[check])).findings
    assert {check} <= set(found) <= {check, *SHOWN_BY_OTHERS.get(check, ())}
    finding = found[check]
    assert finding.update is not None
    assert finding.update > BUG_FROM
    assert (finding.where or "").startswith("tests/watch/test_windows.py")


def test_a_finding_is_told_once() -> None:
    told: list[Finding] = []
    watching = Windows(told.append, apart=1)
    watching.begin()
    Loop(_in_eval_mode).run(120)
    watching.end()
    assert watching.windows > 5
    assert [each.check for each in told] == ["mode::training-in-eval-mode"]


def test_two_optimizers_that_take_turns_raise_no_alarm() -> None:
    """A window begins and ends between the steps of the two."""
    torch.manual_seed(1)
    one, other = nn.Linear(4, 4), nn.Linear(4, 1)
    optimizers = [torch.optim.Adam(each.parameters(), lr=1e-3) for each in (one, other)]
    watching = Windows(lambda finding: None, apart=1)
    watching.begin()
    for turn in range(80):
        loss = other(one(torch.randn(8, 4))).pow(2).mean()
        loss.backward()
        optimizers[turn % 2].step()
        optimizers[1 - turn % 2].step()
        for each in optimizers:
            each.zero_grad()
    watching.end()
    assert watching.updates == 80
    assert watching.windows > 5
    assert watching.findings == {}


# What it costs


def test_a_window_costs_what_its_updates_took_longer_and_its_own_time() -> None:
    cost = Cost(share=0.01, began=100.0, own=0.5)
    cost.watched = [(1.5, False), (0.5, False), (2.0, False), (30.0, True)]
    cost.unwatched.extend([1.0, 1.0, 50.0])
    longer = 0.5 + 0.0 + 1.0
    mixed = 30.0 * longer / 4.0
    assert cost.settle() == pytest.approx(100.0 + 2 * (0.5 + longer + mixed) / 0.01)
    assert cost.spent == cost.latest == pytest.approx(0.5 + longer + mixed)
    cost.watched = [(1.0, False)]
    cost.unwatched.append(1.0)
    assert cost.settle() == pytest.approx(100.0 + (cost.spent + cost.dearest) / 0.01)
    assert (cost.latest, cost.dearest) == (0, cost.spent)


@pytest.mark.parametrize(("share", "several"), [(1e-9, False), (0.99, True)])
def test_the_share_decides_when_the_next_window_opens(share: float, several: bool) -> None:
    watching = watched(Loop(), 300, apart=None, share=share)
    assert (watching.windows > 1) is several
    assert watching.cost.spent > 0
    assert len(watching.cost.unwatched) <= UNWATCHED_UPDATES


def test_an_update_with_an_evaluation_in_it_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(loop: Loop, place: str) -> None:
        if place == "update" and loop.update == 8:
            with torch.no_grad():
                loop.model(torch.zeros(1, 4))

    seen: list[list[bool]] = []
    settle = Cost.settle

    def kept(cost: Cost) -> None:
        seen.append([m for _, m in cost.watched])
        settle(cost)

    monkeypatch.setattr(Cost, "settle", kept)
    watched(Loop(evaluate), FIRST_WINDOW + UNWATCHED_UPDATES + 2, apart=None)
    assert [update for update, mixed in enumerate(seen[0]) if mixed] == [0, 8]  # the first has the epoch's beginning


@pytest.mark.nightly
def test_nothing_grows_with_the_updates() -> None:
    counts: list[int] = []

    def count(loop: Loop, place: str) -> None:
        if place == "update" and loop.update in (301, 1_501):
            loop.losses.clear()
            gc.collect()
            counts.append(len(gc.get_objects()))

    watching = watched(Loop(count), 1_510, apart=2)
    assert watching.windows > 100
    assert counts[1] - counts[0] < 100


# What it leaves alone


def test_where_it_fails_it_says_so_once_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    alone = Loop().run()

    def fails(finding: Finding) -> None:
        raise OSError("no room")

    loop = Loop(_in_eval_mode)
    watching = Windows(fails, apart=2)
    watching.begin()
    loop.run()
    assert not watching.is_watching
    watching.end()
    assert [each.getMessage() for each in caplog.records] == [
        "harness stops watching this run: the watch itself crashed: OSError: no room"
    ]
    caplog.clear()
    monkeypatch.setattr(windows, "instrumented", None)
    loop = Loop()
    watched(loop)
    assert loop == alone
    assert [each.levelno for each in caplog.records] == [logging.WARNING]
    assert not is_in_use()


def test_a_check_that_fails_itself_is_left_out_and_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("HARNESS_DEBUG", raising=False)

    def fails(check: Check, event: object) -> None:
        raise ZeroDivisionError("by us")

    from harness.watch.checks.loss.values import NotFinite

    monkeypatch.setattr(NotFinite, "judge", fails)
    watching = watched(Loop(_not_cleared))
    assert list(watching.findings) == ["gradients::not-cleared"]
    (said,) = [each.getMessage() for each in caplog.records]
    assert said.startswith(
        "harness watches this run without loss::not-finite: the check itself crashed: ZeroDivisionError"
    )


def test_an_error_of_the_run_is_its_own_and_all_is_put_back() -> None:
    def ends(loop: Loop, place: str) -> None:
        _not_cleared(loop, place)
        loop.clears = loop.update < 3
        if loop.update == 8:
            raise KeyboardInterrupt

    told: list[Finding] = []
    watching = Windows(told.append)
    watching.begin()
    with pytest.raises(KeyboardInterrupt):
        Loop(ends).run()
    watching.end()
    assert [each.check for each in told] == ["gradients::not-cleared"]
    assert not is_in_use()
    assert not _global_optimizer_post_hooks


def test_no_window_opens_where_somebody_watches_already() -> None:
    with watch(raise_errors=False) as theirs:
        watching = watched(Loop(_in_eval_mode))
    assert watching.windows == 0
    assert list(theirs.findings) == ["mode::training-in-eval-mode"]


def _of_an_engine(loop: Loop) -> None:
    loop.model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    loop.model.__class__ = type("DeepSpeedEngine", (nn.Sequential,), {"__module__": "deepspeed.runtime.engine"})
    loop.optimizer = AdamW(loop.model.parameters(), lr=1e-2)


def test_models_that_are_spread_over_processes_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop(_not_cleared)
    loop.clears = False
    _of_an_engine(loop)
    watching = watched(loop)
    assert (watching.findings, watching.windows) == ({}, 1)
    assert [each.getMessage() for each in caplog.records] == [
        "harness stops watching this run: DeepSpeedEngine has weights that are sharded over processes"
    ]


def test_a_loop_without_an_optimizer_is_left_alone_after_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(windows, "MOST_PASSES", 5)
    in_use = []
    watching = Windows(lambda finding: None)
    watching.begin()
    weight = torch.ones(3, requires_grad=True)
    for _ in range(8):
        weight.square().sum().backward()
        with torch.no_grad():
            assert weight.grad is not None
            weight -= 0.1 * weight.grad
        weight.grad = None
        in_use.append(is_in_use())
    watching.end()
    assert in_use == [True] * 5 + [False] * 3
    assert [each.getMessage() for each in caplog.records] == [
        "harness stops watching this run: 5 backward passes without a step of an optimizer of torch's"
    ]


def test_compiled_code_is_left_alone(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(windows, "anything_compiled", lambda: True)
    assert watched(Loop()).windows == 0
    assert "torch.compile is in use" in caplog.text


@pytest.fixture
def _compiled() -> Iterator[None]:
    from torch._dynamo import eval_frame

    before = dict(eval_frame.cached_backends)
    yield
    eval_frame.cached_backends.clear()
    eval_frame.cached_backends.update(before)


@pytest.mark.usefixtures("_compiled")
def test_it_is_known_whether_anything_was_compiled() -> None:
    Loop().run(1)  # an optimizer's first step leaves a backend that is none
    assert not anything_compiled()
    torch.compile(nn.Linear(2, 2), backend="eager")
    assert anything_compiled()


@pytest.mark.parametrize("share", [0, 1, -0.5])
def test_what_cannot_be_meant_is_refused(share: float) -> None:
    with pytest.raises(CannotTry, match=r"between 0 and 1, such as 0\.01; found"):
        Windows(print, share=share)
    with pytest.raises(CannotTry, match="there is no check gradients::cleared; did you mean"):
        Windows(print, select=["gradients::cleared"])
    with pytest.raises(CannotTry, match="none of the selected checks can judge a run in windows"):
        Windows(print, select=["rows"])
