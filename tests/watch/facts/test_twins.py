"""A copy that cannot be made or called is spoken of in a note, and changes nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from harness.watch import watch
from harness.watch.events import Forward
from harness.watch.facts import twins
from harness.watch.facts.twins import LanguageTwin, Refused, Twin, detached, probing, with_another


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.calls = nn.Linear(4, 4), 0
        self.layers = nn.ModuleList([self.layer] * 2)
        self.out = nn.Linear(4, 2)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        for layer in self.layers:
            rows = layer(rows).relu()
        logits: torch.Tensor = self.out(rows)
        return logits


class NotCopied(Plain):
    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("there is one of it")


class CalledByItsLoop(Plain):
    """Refuses what is not the training's own call."""

    own: Any = None

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if self is not CalledByItsLoop.own:
            raise ValueError("who asks?\nnobody knows")
        return super().forward(rows)


def hooked() -> Plain:
    model = Plain()
    model.layer.register_forward_hook(lambda *given: None)
    return model


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (NotCopied, "it cannot be copied"),
        (CalledByItsLoop, "ValueError: who asks?"),
        (hooked, "the script has put a hook on it"),
    ],
)
def test_a_refusal_is_a_note_and_no_finding(make: Callable[[], Plain], why: str) -> None:
    torch.manual_seed(0)
    model = CalledByItsLoop.own = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False) as watched:
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,))).backward()
            optimizer.step()
    name = make.__name__ if isinstance(make, type) else "Plain"
    assert watched.notes == [f"whether the shared layers of {name} work one after the other is not known ({why})"]
    assert not watched.findings
    assert "model::layers-shared" not in watched.looked
    assert model.calls == 3


class Notes:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


def random_states() -> tuple[Any, ...]:
    of_numpy: Any = np.random.get_state()
    return random.getstate(), of_numpy[1].tolist(), torch.get_rng_state()


def test_what_is_asked_draws_no_number_of_the_training() -> None:
    notes: Any = Notes()
    before = random_states()
    with probing(notes, "whether anything changes"):
        random.random(), np.random.rand(), torch.rand(1)
        assert not torch.is_grad_enabled()
        raise Refused("for no reason")
    after = random_states()
    assert before[:2] == after[:2]
    assert torch.equal(before[2], after[2])
    assert torch.is_grad_enabled()
    assert notes.texts == ["whether anything changes is not known (for no reason)"]


def test_other_errors_are_not_swallowed() -> None:
    notes: Any = Notes()
    with pytest.raises(ZeroDivisionError), probing(notes, "anything"):
        raise ZeroDivisionError
    assert notes.texts == []


def test_a_copy_is_asked_in_eval_mode_and_the_model_stays_as_it_was() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))
    twin = Twin(model)
    rows = torch.ones(4, 3)
    assert torch.equal(twin.call((rows,), {}), model[1](rows))
    assert model.training
    assert Twin(model, as_it_trains=True).model.training


def test_a_model_without_room_for_a_copy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twins, "LARGEST", 2**3)
    with pytest.raises(Refused, match="it has more than 0 GiB"):
        Twin(Plain())


class Draws(nn.Module):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.rand(*ids.shape, 5)


def test_what_is_said_is_by_the_same_random_numbers() -> None:
    """A model that draws in eval mode says the same twice, so that a difference is the doing of what was changed."""
    twin = LanguageTwin(Forward(0, Draws(), (torch.ones(2, 3),), {}, None))
    assert torch.equal(twin.logits_with(), twin.logits_with())


def test_one_tensor_is_given_in_the_place_of_another() -> None:
    one, other, kept = torch.zeros(2), torch.ones(2), torch.full((2,), 5.0)
    forward = Forward(0, nn.Identity(), (one, [kept, {"again": one}]), {"named": one}, one)
    args, kwargs = with_another(forward, one, other)
    assert [each.tolist() for each in (args[0], args[1][0], args[1][1]["again"], kwargs["named"])] == [
        [1.0, 1.0],
        [5.0, 5.0],
        [1.0, 1.0],
        [1.0, 1.0],
    ]
    assert args[1][0] is not kept


class Memory:
    """A script's own object, with an attribute that is called as a mapping's method is."""

    def __init__(self) -> None:
        self.items: list[torch.Tensor] = []


class Remembers(nn.Module):
    """Grows what it is given with each of its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, rows: torch.Tensor, memory: Memory | None = None) -> torch.Tensor:
        if memory is not None:
            memory.items.append(rows)
        logits: torch.Tensor = self.layer(rows if memory is None else torch.stack(memory.items).mean(0))
        return logits


def test_a_script_s_own_object_is_given_to_no_second_call() -> None:
    model, memory = Remembers(), Memory()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False) as watched:
        for _ in range(2):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,))).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for _ in range(3):
                model(torch.randn(8, 4), memory=memory)
    assert len(memory.items) == 3
    why = "it is given an object that its call may change: Memory"
    assert watched.notes == [f"whether Remembers gives the same logits again is not known ({why})"]
    assert not watched.crashed
    assert not watched.findings


def test_what_is_data_is_copied() -> None:
    given = PackedSequence(torch.ones(3), torch.ones(2)), {"of": [None, 1.5, "mean"]}
    packed, named = detached(given)
    assert isinstance(packed, PackedSequence)
    assert torch.equal(packed.data, given[0].data)
    assert packed.data is not given[0].data
    assert named == given[1]


def test_a_model_without_logits_for_each_token_is_refused() -> None:
    forward = Forward(0, nn.Linear(3, 2), (torch.ones(4, 3),), {"labels": torch.ones(4)}, None)
    with pytest.raises(Refused, match="no logits for each token"):
        LanguageTwin(forward).logits_with()
