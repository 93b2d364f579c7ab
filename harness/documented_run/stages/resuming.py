"""Resuming: what a training keeps after each epoch, and how one that was killed goes on from there, bit for bit.

The stages before the training are gone through again, which takes them to the state that they had left; what the
training has done since then is read back, with what was seen of it, so that every check says what it would have said.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader
from tqdm.auto import tqdm

from harness import launch
from harness.documented_run.loops.trainer import Resumed, read_state, written_state
from harness.errors import CannotTry
from harness.files import replaced_atomically
from harness.torch_objects import own_generators, random_state, raw_optimizer, set_random_state

if TYPE_CHECKING:
    from harness.documented_run.stages.chain import Run

SCHEMA = 3


@dataclass
class Keeper:
    """Keeps how far a training is in one file, which a crash leaves as it was after the last whole epoch."""

    path: Path
    about: Callable[[Run], dict[str, Any]]
    """What must be the same where the training goes on: recipe, versions, machine, data."""
    resume: bool = False
    """Whether the training goes on from what is there; from its beginning where nothing is."""
    known: dict[str, Any] = field(default_factory=dict)
    """What ``about`` said of this run."""

    def keep(self, run: Run, loader: DataLoader[Any]) -> None:
        """After a whole epoch, whose rows came from ``loader``. Collective: every rank must call it."""
        if len(run.training.updates) % len(run.train_dl):
            return  # Trainer also evaluates where it is stopped early
        mine = {
            "random": random_state(),
            "order": state_of_order(loader),
            "training": run.training.state_dict(),
        }
        ranks = launch.of_all_ranks(mine)
        if not launch.is_main_process():
            return
        with_trainer = run.recipe.loop == "trainer"
        state = {
            "schema": SCHEMA,
            "about": self.known,
            "model": run.model.state_dict(),
            "optimizer": raw_optimizer(run.optimizer).state_dict(),
            "lr_scheduler": (run.trainer.lr_scheduler if with_trainer else run.lr_scheduler).state_dict(),
            "epochs": run.epochs,
            "trainer": written_state(run.trainer) if with_trainer else None,
            "ranks": ranks,
        }
        try:
            with replaced_atomically(self.path) as file:
                torch.save(state, file)
        except (OSError, RuntimeError) as error:  # torch's own words for a disk that is full
            tqdm.write(
                f"harness: this epoch could not be saved, so --resume cannot continue from it ({error})",
                file=sys.stderr,
            )

    def go_on(self, run: Run) -> Resumed | None:
        """Put model, optimizer, schedule, random numbers and what was seen back; None where nothing was kept.

        Trainer does its part itself, with what is returned.

        Raises:
            CannotTry: what was kept cannot be read, or is of another run.
        """
        self.known = self.about(run)
        state = self.read()
        if state is None:
            return None
        self.check(state, self.known)
        mine = state["ranks"][launch.rank()]
        run.model.load_state_dict(state["model"])
        run.epochs = state["epochs"]
        run.training.load_state_dict(mine["training"])
        run.gone_on_after = made = len(run.training.updates)
        run.progress_bar.initial = run.progress_bar.n = run.progress_bar.last_print_n = made

        def load(optimizer: Any, lr_scheduler: Any) -> None:
            raw_optimizer(optimizer).load_state_dict(state["optimizer"])
            lr_scheduler.load_state_dict(state["lr_scheduler"])

        def begin_epoch(loader: DataLoader[Any]) -> None:
            set_state_of_order(loader, mine["order"])
            set_random_state(mine["random"])

        if run.recipe.loop == "trainer":
            return read_state(run.trainer, state["trainer"], load=load, begin_epoch=begin_epoch)
        load(run.optimizer, run.lr_scheduler)
        begin_epoch(run.train_dl)
        return None

    def check_begun(self, about: dict[str, Any]) -> None:
        """Whether what was kept, if anything was, is of this run: as far as is known before anything is spent.

        Raises:
            CannotTry: it cannot be read, or is of another run.
        """
        state = self.read(mmap=True)
        if state is not None:
            self.check(state, about)

    def read(self, *, mmap: bool = False) -> dict[str, Any] | None:
        """What was kept; None where nothing was. With ``mmap`` tensors are read when they are looked at.

        Raises:
            CannotTry: it cannot be read.
        """
        if not (self.resume and self.path.exists()):
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, map_location="cpu", weights_only=True, mmap=mmap)
        except Exception as error:  # of whatever a damaged file makes of its readers
            raise CannotTry(
                f"{self.path} cannot be read ({type(error).__name__}); remove it to start the run from the beginning"
            ) from error
        if state.get("schema") != SCHEMA:
            raise CannotTry(
                f"{self.path} is of another version of the harness; remove it to start the run from the beginning"
            )
        return state

    def check(self, state: dict[str, Any], about: dict[str, Any]) -> None:
        """Whether ``state`` is of this run, as far as ``about`` tells.

        Raises:
            CannotTry: it is not; names the first thing that differs.
        """
        for name, value in _flat(about):
            kept = dict(_flat(state["about"])).get(name)
            if kept != value:
                raise CannotTry(
                    f"the run in {self.path.parent} has {name} {kept!r}, and here it is {value!r}: a run can be "
                    "resumed only with the same options, data, versions and machine; give those, or a new --output"
                )


def state_of_order(loader: DataLoader[Any]) -> dict[str, Any]:
    """What decides on the rows' order in the next epoch, beside torch's random numbers."""
    return {
        "generators": {
            name: generator.get_state()
            for name, (_, generator) in own_generators(loader).items()
            if generator is not None
        },
        "iteration": getattr(loader, "iteration", None),  # of Accelerate's, which counts epochs
    }


def set_state_of_order(loader: Any, state: dict[str, Any]) -> None:
    """Go on from what :func:`state_of_order` told, with a dataloader that may not have been gone through yet."""
    owners = own_generators(loader)
    for name, kept in state["generators"].items():
        owner, generator = owners[name]
        if generator is None:  # Accelerate's sampler makes one when it is first gone through
            generator = owner.generator = torch.Generator()
        generator.set_state(kept)
    if state["iteration"] is not None:
        loader.iteration = state["iteration"]


def _flat(values: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Each value below, by its path."""
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        found += _flat(value, f"{before}{name}.") if isinstance(value, dict) else [(f"{before}{name}", value)]
    return found
