"""What is written down of an update: all optimizers that step one after the other make it together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from harness.compare.look import Look
from harness.starts.journal import Journal, Writer
from harness.starts.orders import Keep, KillPoint
from harness.starts.recorder import Recorder, Recording
from harness.watch.instrument import instrumented
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options
from harness.watch.session import Session


class Ended(BaseException):
    pass


def ended() -> None:
    raise Ended


def journal_of(folder: Path, updates: int = 3, most: int | None = None, *, apart: bool = False) -> Journal:
    """Of a training with two optimizers over disjoint parameters, which may each have a backward pass of their own."""
    with (folder / "journal").open("a") as file:
        recording = Recording(Writer(file), KillPoint(), most, ended, ended)

        def recorder(monitor: Monitor) -> Recorder:
            return Recorder(monitor, recording)

        def look(monitor: Monitor) -> Look:
            return Look(monitor, recording, Keep(2, str(folder / "kept.pt")))

        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
        with instrumented(Session(Options((recorder, look)), Locator(Path(__file__)))):
            optimizers: list[Any] = [torch.optim.SGD(model[0].parameters(), lr=0.1)]
            optimizers.append(torch.optim.AdamW(model[1].parameters(), lr=0.2))
            try:
                for _ in range(updates):
                    for turn in [[each] for each in optimizers] if apart else [optimizers]:
                        model.zero_grad()
                        model(torch.randn(5, 4)).square().mean().backward()
                        for optimizer in turn:
                            optimizer.step()
            except Ended:
                pass
    return Journal.read(folder / "journal")


def test_optimizers_that_step_one_after_the_other_make_one_update(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    assert [each.at for each in journal.updates] == [1, 2, 3]
    for update in journal.updates:
        assert len(update.losses) == len(update.batches) == 1
        assert update.lr == (0.1, 0.2)
        assert update.options["optimizer"] == "SGD, AdamW"
        assert len(update.trained) == len(update.gradients) == 4
    kept = torch.load(tmp_path / "kept.pt", weights_only=True)
    moved = [name for name, before in kept["weights"].items() if not torch.equal(before, kept["after"][name])]
    assert len(moved) == 4


@pytest.mark.parametrize("most", [2, 3])
def test_the_last_update_is_whole(most: int, tmp_path: Path) -> None:
    journal = journal_of(tmp_path, 5, most)
    assert [each.lr for each in journal.updates] == [(0.1, 0.2)] * most


def test_optimizers_with_backward_passes_of_their_own_make_several(tmp_path: Path) -> None:
    journal = journal_of(tmp_path, apart=True)
    assert [each.lr for each in journal.updates] == [(0.1,), (0.2,)] * 3


@pytest.mark.parametrize("leaves", [True, False])
def test_an_evaluation_that_is_left_is_no_pass_of_what_is_trained(leaves: bool, tmp_path: Path) -> None:
    """The script trains on a stream of its own, and evaluates on a loader."""
    model, held_out = nn.Linear(4, 2), DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=4)
    with (tmp_path / "journal").open("a") as file:
        recording = Recording(Writer(file), KillPoint(), None, ended, ended)

        def recorder(monitor: Monitor) -> Recorder:
            return Recorder(monitor, recording)

        with instrumented(Session(Options((recorder,)), Locator(Path(__file__)))):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(4):
                model(torch.randn(5, 4)).square().mean().backward()
                optimizer.step()
                with torch.no_grad():
                    for (rows,) in held_out:
                        model(rows)
                        if leaves:
                            break
    updates = Journal.read(tmp_path / "journal").updates
    assert [batch.number for update in updates for batch in update.batches] == [0] * 4
    assert len({batch.rows for update in updates for batch in update.batches}) == 4
