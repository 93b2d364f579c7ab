"""docs/callbacks.md: its examples run, and its numbers are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from harness.watch.windows import FIRST_WINDOW, LATER, MIN_APART, UNWATCHED_UPDATES
from tests.callbacks.test_callbacks import QUIET, Classifier, Rows

PAGE = (Path(__file__).parents[2] / "docs" / "callbacks.md").read_text(encoding="utf-8")
TRAINER, LIGHTNING, LOOP = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_trainers_example_runs(tmp_path: Path) -> None:
    from transformers import Trainer, TrainingArguments

    names: dict[str, Any] = {"Trainer": Trainer, "model": Classifier(), "train_dataset": Rows()}
    exec(TRAINER, names | {"arguments": TrainingArguments(str(tmp_path), num_train_epochs=1, **QUIET)}, names)
    (mine,) = [each for each in names["trainer"].callback_handler.callbacks if hasattr(each, "windows")]
    assert mine.windows.updates == names["trainer"].state.global_step > 0


@pytest.mark.slow  # in CI the extra styles is there for slow tests
def test_lightnings_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lightning = pytest.importorskip("lightning", reason="needs lightning, of the extra styles")

    class Module(lightning.LightningModule):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model = Classifier()

        def training_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            return self.model(**batch)["loss"]

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters())

    names = {"lightning": lightning, "model": Module(), "train_dataloader": DataLoader(Rows(), batch_size=8)}
    monkeypatch.chdir(tmp_path)  # it keeps checkpoints
    exec(LIGHTNING, names)
    (mine,) = [each for each in names["trainer"].callbacks if hasattr(each, "windows")]
    assert mine.windows.updates == names["trainer"].global_step == 36


class Model(Classifier):
    """Gives its loss as those of transformers do."""

    def forward(self, **batch: torch.Tensor) -> Any:  # type: ignore[override]
        from types import SimpleNamespace

        return SimpleNamespace(**super().forward(**batch))


def test_the_loops_example_runs(caplog: pytest.LogCaptureFixture) -> None:
    from accelerate import Accelerator

    accelerator, model = Accelerator(cpu=True), Model()
    optimizer: Any = torch.optim.AdamW(model.parameters())
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(Rows(), batch_size=8))
    scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer.optimizer, 1.0)
    before = [p.clone() for p in model.parameters()]
    exec(LOOP, {"accelerator": accelerator, "model": model, "optimizer": optimizer, "lr_scheduler": scheduler,
                "train_dataloader": loader})  # fmt: skip
    assert not any(torch.equal(p, b) for p, b in zip(nn.Module.parameters(model), before, strict=True))
    assert caplog.records == []


def test_the_pages_numbers_are_those_of_the_code() -> None:
    for words in (
        f"first {FIRST_WINDOW} updates",
        f"{LATER} updates now",
        f"the {UNWATCHED_UPDATES} unwatched",
        f"{MIN_APART} updates",
    ):
        assert words in PAGE
