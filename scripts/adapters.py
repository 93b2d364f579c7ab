"""Ask other tools about a training script, as their own pages say they are used.

    python -m scripts.adapters --tool NAME --json FILE [-m] SCRIPT [ARGUMENTS]...

gives the script's file to a tool that reads it, or else runs the script with the instruments of ``harness check`` and
no check, and calls the tool with what the loop has at its first update: the model, its batch, the loss and the
optimizer. FILE gets a JSON object: ``findings``, or else why the tool could not be asked (``not_asked``), or how it or
the script failed (``broken``). Nothing of the script is changed: a tool that makes steps of its own gets the objects of
a process that ends with that update.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import click
import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils import _pytree as pytree

from harness import launch
from harness.errors import CannotTry
from harness.files import write_atomically
from harness.findings import Severity
from harness.torch_objects import held_by, unchanged_random_state
from harness.watch.bus import OutcomeListener
from harness.watch.events import BackwardBegins, Forward, LossCall, Step, StepBegins
from harness.watch.instrument import instrumented
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options, UpdateLimitReached
from harness.watch.session import Session

Found = list[dict[str, Any]]


def finding(check: str, severity: Severity, message: str) -> dict[str, Any]:
    return {"check": check, "severity": severity, "message": message}


@dataclass(frozen=True)
class Objective:
    """The loss of one batch, as it can be computed again."""

    forward: Forward
    call: LossCall | None
    """The one call of a loss function whose value is differentiated; None where the model gives its own loss."""

    @classmethod
    def of(cls, backward: BackwardBegins | None, optimizer: Optimizer) -> Objective:
        """
        Raises:
            CannotTry: it is more than one call of a model and one of a loss function on what that returned.
        """
        if backward is None:
            raise CannotTry("there was no backward pass before the first step")
        forward = _only_forward(backward, optimizer)
        if forward.loss is not None and _is_multiple(backward.root, forward.loss):
            return cls(forward, None)
        calls = [call for call in backward.losses if _is_multiple(backward.root, call.value)]
        if not calls or forward.logits is None:
            raise CannotTry("what is differentiated is not the value of one loss function")
        if not _is_view(calls[0].input, forward.logits):
            raise CannotTry("the loss function gets something that is computed from the model's output")
        if calls[0].target.grad_fn is not None:
            raise CannotTry("the target is computed by a model")
        return cls(forward, calls[0])

    @property
    def inputs(self) -> Any:
        """What the model is given: a tuple by position, or a dict by name."""
        return dict(self.forward.kwargs) if self.forward.kwargs else self.forward.args

    def loss(self, output: Any, targets: torch.Tensor) -> torch.Tensor:
        """The script's loss of an output of the model."""
        again = Forward(0, self.forward.model, (), {}, output).logits
        assert self.call is not None
        assert again is not None
        given = self.call.input
        logits = again.as_strided(given.shape, given.stride(), given.storage_offset())
        value: torch.Tensor = getattr(nn.functional, self.call.function)(logits, targets, **self.call.options)
        return value

    def step(self) -> torch.Tensor:
        """The model on its batch, and the loss."""
        output = self.forward.model(*self.forward.args, **self.forward.kwargs)
        if self.call is not None:
            return self.loss(output, self.call.target)
        loss = Forward(0, self.forward.model, (), {}, output).loss
        assert loss is not None
        return loss

    def compute(self) -> None:
        """
        Raises:
            CannotTry: that a second time fails: what a tool says of it would not be about the script.
        """
        try:
            with unchanged_random_state():
                self.step()
        except Exception as error:
            raise CannotTry(f"the loss cannot be computed a second time: {error}") from error


def _steps(optimizer: Optimizer, model: nn.Module) -> bool:
    """Whether the optimizer holds parameters of the model."""
    held = {id(parameter) for parameter in held_by(optimizer)}
    return any(id(parameter) in held for parameter in model.parameters())


def _only_forward(backward: BackwardBegins, optimizer: Optimizer) -> Forward:
    forwards = [each for each in backward.forwards if each.gradients and _steps(optimizer, each.model)]
    if len(forwards) != 1:
        raise CannotTry(f"{len(forwards)} calls of the optimizer's model are behind the loss")
    (forward,) = forwards
    if any(each.grad_fn is not None for each in _tensors((forward.args, dict(forward.kwargs)))):
        raise CannotTry("the model is given what another one computed")
    if forward.args and forward.kwargs:
        raise CannotTry("the model is given arguments by position and by name")
    return forward


def _is_multiple(root: torch.Tensor, loss: torch.Tensor) -> bool:
    """Whether it is the loss, or that times constants, as for accumulation or under a GradScaler."""
    node = root.grad_fn
    while node is not None and node is not loss.grad_fn:
        inner = [each for each, _ in node.next_functions if each is not None]
        node = inner[0] if len(inner) == 1 and node.name() in ("MulBackward0", "DivBackward0") else None
    return root is loss or node is not None


def _is_view(tensor: torch.Tensor, of: torch.Tensor) -> bool:
    return tensor.untyped_storage().data_ptr() == of.untyped_storage().data_ptr() and tensor.dtype == of.dtype


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if torch.is_tensor(leaf)]


class Asking(OutcomeListener):
    """Listens to a loop and asks one tool about it. It stands among the monitor's checks; nothing else is there."""

    id: ClassVar[str] = "adapter"
    module: ClassVar[str]
    """What is imported of it."""
    release: ClassVar[str]
    """The release that is measured."""
    updates: ClassVar[int | None] = None
    """The updates after which the script is ended; None where the tool is to see all of them."""

    def __init__(self, report: Path, seconds: float) -> None:
        self.report, self.until = report, time.monotonic() + seconds
        self.backward: BackwardBegins | None = None
        self.findings: Found | None = None
        self.not_asked: str | None = None

    def __call__(self, monitor: Monitor) -> Asking:
        """The same for each of the script's loops: the first that steps is judged."""
        return self

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self.backward = event

    def on_step(self, event: Step) -> None:
        if time.monotonic() > self.until:
            raise UpdateLimitReached

    def ends(self) -> None:
        """The script is over."""

    def cannot(self, reason: CannotTry) -> NoReturn:
        """There is nothing more to see in this script."""
        self.not_asked = str(reason)
        raise UpdateLimitReached


class OnFirstStep(Asking):
    """Asks a tool that makes steps of its own, before the script makes its first and last one."""

    updates = 1

    def on_step_begins(self, event: StepBegins) -> None:
        if self.findings is not None:
            return
        try:
            objective = Objective.of(self.backward, event.optimizer)
            with torch.enable_grad():
                objective.compute()
        except CannotTry as error:
            self.cannot(error)
        with torch.enable_grad():
            self.findings = self.ask(objective, event.optimizer)

    def ask(self, objective: Objective, optimizer: Optimizer) -> Found:
        raise NotImplementedError


class Guardtower(OnFirstStep):
    module = "guardtower"
    release = "0.1.0"

    def ask(self, objective: Objective, optimizer: Optimizer) -> Found:
        inputs = [each for each in _tensors(objective.inputs) if each.is_floating_point()]
        report = importlib.import_module(self.module).audit(
            objective.forward.model, objective.step, optimizer=optimizer, inputs=inputs or None
        )
        errors = [finding(each.check, "error", each.message) for each in report.errors]
        return errors + [finding(each.check, "warning", each.message) for each in report.warnings]


class Torchtest2(OnFirstStep):
    module = "torchtest2"
    release = "0.1.0"

    def ask(self, objective: Objective, optimizer: Optimizer) -> Found:
        own = {} if objective.call is None else {"targets": objective.call.target, "loss_fn": objective.loss}
        report = importlib.import_module(self.module).check_model(
            objective.forward.model, objective.inputs, optimizer=optimizer, **own
        )
        errors = [finding(each.name, "error", each.message) for each in report.failures]
        return errors + [finding(each.name, "warning", each.message) for each in report.warnings]


class TorchAudit(Asking):
    """Patched in after the script's first update, until the script ends."""

    module = "torch_audit"
    release = "0.3.0"
    SEVERITIES: ClassVar[Mapping[str, Severity]] = {"FATAL": "error", "ERROR": "error", "WARN": "warning"}

    def __init__(self, report: Path, seconds: float) -> None:
        super().__init__(report, seconds)
        self._auditor: Any = None

    def on_step(self, event: Step) -> None:
        if self._auditor is None:
            forwards = self.backward.forwards if self.backward is not None else ()
            model = next((each.model for each in forwards if _steps(event.optimizer, each.model)), None)
            if model is None:
                self.cannot(CannotTry("which model the optimizer updates is not known"))
            autopatch = importlib.import_module(self.module).autopatch
            self._auditor = autopatch(model, optimizer=event.optimizer, every_n_steps=1)
        super().on_step(event)

    def ends(self) -> None:
        if self._auditor is not None:
            found = {each.rule_id: each for each in self._auditor.finish().findings}
            self.findings = [
                finding(rule, self.SEVERITIES[each.severity.value], each.message)
                for rule, each in found.items()
                if each.severity.value in self.SEVERITIES
            ]


class Trainproof(Asking):
    """A log for each optimizer, a line an update, for its doctor when the script has ended."""

    module = "trainproof"
    release = "0.22.0"
    SEVERITIES: ClassVar[Mapping[str, Severity]] = {"FAIL": "error", "WARN": "warning"}

    def __init__(self, report: Path, seconds: float) -> None:
        super().__init__(report, seconds)
        self._logs = self.report.with_suffix(".logs")
        self._files: dict[int, Path] = {}

    def on_step_begins(self, event: StepBegins) -> None:
        optimizer = event.optimizer
        gradients = [each.grad for each in held_by(optimizer) if each.grad is not None and not each.grad.is_sparse]
        line = {
            "step": event.number,
            "lr": float(optimizer.param_groups[0]["lr"]),
            "grad_norm": math.hypot(*(float(torch.linalg.vector_norm(each.float())) for each in gradients)),
        }
        if self.backward is not None and self.backward.root.numel() == 1:
            line["loss"] = float(self.backward.root.detach()) / self.backward.scale
        self._logs.mkdir(exist_ok=True)
        path = self._files.setdefault(id(optimizer), self._logs / f"{len(self._files)}.jsonl")
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def ends(self) -> None:
        if not self._files:
            return
        command = [sys.executable, "-m", self.module, "doctor", str(self._logs), "--json"]
        done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
        said = json.loads(done.stdout)
        if said["error"] is not None:
            self.not_asked = said["error"]
            return
        self.findings = [
            finding(each["id"], self.SEVERITIES[each["level"]], f"{each['message']} {each['evidence']}")
            for log in said["reports"]
            for each in log["findings"]
            if each["level"] in self.SEVERITIES
        ]


class Reading:
    """A tool that reads the script's file."""

    module: ClassVar[str]
    release: ClassVar[str]

    def read(self, script: str) -> Found:
        """What it says of the file.

        Raises:
            CannotTry: it could not read it.
        """
        raise NotImplementedError


class TorchPreflight(Reading):
    module = "torch_preflight"
    release = "0.5.0"

    def read(self, script: str) -> Found:
        command = [sys.executable, "-m", self.module, "check", script, "-f", "json", "-j", "1"]
        done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
        said = json.loads(done.stdout)
        if said["failures"]:
            raise CannotTry(said["failures"][0]["error"])
        return [
            finding(each["code"], each["severity"], each.get("message") or "")
            for each in said["diagnostics"]
            if each["severity"] != "note"
        ]


class Mldoct(Reading):
    """``mldoctor check``, whose command prints a table of what this function returns."""

    module = "mldoctor"
    release = "1.0.0"
    SEVERITIES: ClassVar[Mapping[str, Severity]] = {"CRITICAL": "error", "ERROR": "error", "WARNING": "warning"}

    def read(self, script: str) -> Found:
        said, _ = importlib.import_module("mldoctor.linter").lint_script(script)
        return [
            finding(each["type"], self.SEVERITIES[each["severity"]], each["message"])
            for each in said
            if each["severity"] in self.SEVERITIES
        ]


TOOLS: Mapping[str, type[Asking | Reading]] = {
    "torch-preflight": TorchPreflight,
    "mldoct": Mldoct,
    "torch-audit": TorchAudit,
    "torchtest2": Torchtest2,
    "guardtower": Guardtower,
    "trainproof": Trainproof,
}


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--tool", required=True, type=click.Choice(list(TOOLS)))
@click.option(
    "--json",
    "report",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write what it said to this file.",
)
@click.option("--seconds", type=float, default=60.0, show_default=True, help="When a script that goes on is ended.")
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(tool: str, report: Path, script: str, arguments: tuple[str, ...], seconds: float, module: bool) -> None:
    """Ask a tool about SCRIPT."""
    importlib.import_module(TOOLS[tool].module)
    reading = TOOLS[tool]
    if issubclass(reading, Reading):
        write_atomically(report, json.dumps(_read(reading(), script, module=module)))
        return
    asking = reading(report.absolute(), seconds)
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.getcwd() if module else str(Path(script).resolve().parent))
    threads = Session(Options((asking,), updates=asking.updates), Locator(None if module else Path(script)))
    with instrumented(threads):
        crashed = _run(script, module=module)
    threads.ends()
    asking.ends()
    if launch.is_main_process():
        said: dict[str, Any] = {"findings": asking.findings, "not_asked": asking.not_asked, "broken": None}
        if asking.findings is None and asking.not_asked is None:
            said["broken"] = threads.crashed.get(Asking.id) or crashed
            said["not_asked"] = None if said["broken"] else "the script made no update"
        write_atomically(asking.report, json.dumps(said))


def _read(tool: Reading, script: str, *, module: bool) -> dict[str, Any]:
    said: dict[str, Any] = {"findings": None, "not_asked": None, "broken": None}
    if module:
        return said | {"not_asked": "it takes files, and this is a module"}
    try:
        return said | {"findings": tool.read(script)}
    except Exception as error:  # noqa: BLE001 - whatever it was, there is no answer
        return said | {"broken": f"{type(error).__name__}: {error}"}


def _run(script: str, *, module: bool) -> str | None:
    """Run the script as Python would; what it crashed with."""
    try:
        if module:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")
    except UpdateLimitReached:
        pass
    except SystemExit as ended:
        return None if ended.code in (None, 0) else f"it ended itself with {ended.code!r}"
    except BaseException as error:  # noqa: BLE001 - whatever it was, it is the script's
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    main()
