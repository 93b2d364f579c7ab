"""The callbacks: runs of Trainer, Accelerate, Lightning and a plain loop are watched, and go on as if they were not."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_post_hooks
from torch.utils.data import DataLoader, Dataset, TensorDataset

from harness.callbacks import TrainerCallback, watching
from harness.callbacks.telling import logger
from harness.compat import evaluation_strategy
from harness.errors import CannotTry
from harness.watch import windows

ROWS = 96

QUIET = {"logging_strategy": "no", "report_to": "none", "disable_tqdm": True, "use_cpu": True}
"""Trainer's arguments."""

ARGUMENTS = [{}, {"gradient_accumulation_steps": 3}, evaluation_strategy("steps") | {"eval_steps": 5}]


class Rows(Dataset[Any]):
    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(5)
        self.inputs = torch.randn(ROWS, 4, generator=generator)

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"inputs": self.inputs[index], "labels": (self.inputs[index].sum() > 0).long()}


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.layers(inputs)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class StaysInEvalMode(Classifier):
    """As one whose forward pass was written for inference."""

    def train(self, mode: bool = True) -> StaysInEvalMode:
        super().train(False)
        return self


@pytest.fixture(autouse=True)
def _short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MIN_APART", windows.UNWATCHED_UPDATES)


def trained(folder: Path, model: nn.Module, *callbacks: Any, **arguments: Any) -> Any:
    from transformers import Trainer, TrainingArguments

    arguments = {"num_train_epochs": 6, "save_strategy": "no", "logging_strategy": "no"} | arguments
    given = TrainingArguments(
        str(folder),
        per_device_train_batch_size=8,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=3,
        **arguments,
    )
    trainer = Trainer(model, given, train_dataset=Rows(), eval_dataset=Rows(), callbacks=list(callbacks))
    trainer.train()
    return trainer


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    "arguments", [{}, {"gradient_accumulation_steps": 3}, {"eval_strategy": "steps", "eval_steps": 5}]
)
def test_trainer_is_watched_and_trains_the_same_bits(tmp_path: Path, arguments: dict[str, Any]) -> None:
    callback = TrainerCallback(share=0.9)
    alone, beside = Classifier(), Classifier()
    trained(tmp_path, alone, **arguments)
    state = torch.get_rng_state()
    trainer = trained(tmp_path, beside, callback, **arguments)
    assert same(alone, beside)
    assert torch.equal(torch.get_rng_state(), state)
    assert callback.windows.updates == trainer.state.global_step
    assert callback.windows.windows >= 1, "how far the next is away is measured"
    assert callback.windows.findings == {}
    assert not callback.windows.is_watching
    assert not _global_optimizer_post_hooks


def test_trainers_silent_bug_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trained(tmp_path, StaysInEvalMode(), TrainerCallback())
    (record,) = [each for each in caplog.records if each.name == logger.name]
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith("harness found in this run: mode::training-in-eval-mode\n")


def test_a_resumed_training_counts_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trained(tmp_path, Classifier(), num_train_epochs=1, save_strategy="epoch")
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(str(tmp_path), num_train_epochs=2, per_device_train_batch_size=8, seed=3, **QUIET)
    callback = TrainerCallback()
    trainer = Trainer(StaysInEvalMode(), arguments, train_dataset=Rows(), callbacks=[callback])
    trainer.train(resume_from_checkpoint=True)
    assert callback.windows.updates == trainer.state.global_step == 24
    assert callback.windows.findings["mode::training-in-eval-mode"].update == 13


def accelerated(*, clears: bool = True) -> nn.Module:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    torch.manual_seed(7)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(Rows(), batch_size=4, shuffle=True))
    for _ in range(8):
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(**batch)["loss"])
                optimizer.step()
                if clears:
                    optimizer.zero_grad()
    return model


def test_a_loop_with_accelerate_is_watched_and_trains_the_same_bits() -> None:
    alone = accelerated()
    with watching(share=0.9) as watched:
        watched._apart = 20  # whatever the clock says
        beside = accelerated()
    assert same(alone, beside)
    assert (watched.updates, watched.findings) == (96, {})
    assert watched.windows >= 2
    with watching() as watched:
        accelerated(clears=False)
    assert list(watched.findings) == ["gradients::not-cleared"]


@pytest.mark.slow  # in CI the extra styles is there for slow tests
def test_lightning_is_watched_and_trains_the_same_bits() -> None:
    lightning = pytest.importorskip("lightning", reason="needs lightning, of the extra styles")
    from harness.callbacks import LightningCallback

    class Module(lightning.LightningModule):  # type: ignore[name-defined]
        def __init__(self, model: nn.Module) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            return self.model(**batch)["loss"]

        def validation_step(self, batch: dict[str, torch.Tensor]) -> None:
            self.log("loss", self.model(**batch)["loss"])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=1e-2)

    def fitted(model: nn.Module, *callbacks: Any) -> nn.Module:
        lightning.seed_everything(7, verbose=False)
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        trainer = lightning.Trainer(
            max_epochs=8, accelerator="cpu", enable_model_summary=False, callbacks=list(callbacks), **quiet
        )
        trainer.fit(Module(model), DataLoader(Rows(), batch_size=8, shuffle=True), DataLoader(Rows(), batch_size=32))
        return model

    callback = LightningCallback(share=0.9)
    callback.windows._apart = 20  # whatever the clock says
    assert same(fitted(Classifier()), fitted(Classifier(), callback))
    assert (callback.windows.updates, callback.windows.findings) == (96, {})
    assert callback.windows.windows >= 2
    assert not _global_optimizer_post_hooks
    callback = LightningCallback()
    fitted(Classifier().eval(), callback)  # Lightning calls no train() itself
    assert list(callback.windows.findings) == ["mode::training-in-eval-mode"]


def test_of_several_processes_the_first_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    with watching() as watched:
        accelerated(clears=False)
        assert not _global_optimizer_post_hooks
    assert (watched.windows, watched.findings) == (0, {})


def test_what_cannot_be_meant_is_refused_before_the_training() -> None:
    with pytest.raises(CannotTry, match="there is no check gradient"):
        TrainerCallback(ignore=["gradient::lost"])


def test_a_callback_can_be_pickled_as_launchers_do(tmp_path: Path) -> None:
    callback = pickle.loads(pickle.dumps(TrainerCallback(share=0.5)))
    trained(tmp_path, StaysInEvalMode(), callback, num_train_epochs=1)
    assert list(callback.windows.findings) == ["mode::training-in-eval-mode"]


def test_importing_the_package_imports_no_library() -> None:
    code = "import sys, harness.callbacks; print([m for m in ('torch', 'transformers', 'wandb') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(ImportError, match="cannot import name 'Callback'"):
        from harness.callbacks import Callback  # noqa: F401


def test_a_plain_loop_is_watched() -> None:
    data = TensorDataset(torch.randn(64, 4), torch.arange(64) % 2)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching() as watched:
        for inputs, labels in DataLoader(data, batch_size=4):
            nn.functional.cross_entropy(model(inputs).softmax(1), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert list(watched.findings) == ["loss::not-raw-logits"]
