"""Several processes: each is watched, the first one reports for all."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from harness.compat import accelerates_variable
from harness.errors import CannotTry
from harness.watch.exchange import exchange_folder
from tests.server import Done, server_of
from tests.versions import installed

pytestmark = pytest.mark.distributed

SCRIPT = """
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

from harness.metrics import load_metric

accelerator = Accelerator()
torch.manual_seed(0)
train = TensorDataset(torch.randn(48, 4), torch.arange(48) % 2)
validation = TensorDataset(torch.randn(22, 4), torch.arange(22) % 2)
train_dl = DataLoader(train, batch_size=4, shuffle=True)
eval_dl = DataLoader(validation, batch_size=4)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer, train_dl, eval_dl = accelerator.prepare(model, optimizer, train_dl, eval_dl)
for epoch in range(2):
    for inputs, labels in train_dl:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
metric = load_metric()
model.eval()
for inputs, labels in eval_dl:
    with torch.no_grad():
        predictions = model(inputs).argmax(dim=-1)
    predictions, references = accelerator.gather_for_metrics((predictions, labels))
    metric.add_batch(predictions=predictions, references=references)
if accelerator.is_main_process:
    print(metric.compute())
"""


def started(folder: Path, script: str, *launcher: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    (folder / "train.py").write_text(script)
    environment = {**os.environ, accelerates_variable("ACCELERATE_USE_CPU"): "true", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *launcher, "-m", "harness", "check", "--json", "found.json", "train.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=180)
    file = folder / "found.json"
    assert file.exists(), done.stderr[-2000:]
    return done, json.loads(file.read_text())


def forked(folder: Path, script: str, config: pytest.Config) -> tuple[Done, dict[str, Any]]:
    """As torchrun starts two processes, which are forked."""
    (folder / "train.py").write_text(script)
    cpu = {accelerates_variable("ACCELERATE_USE_CPU"): "true"}
    command = ("check", "--json", "found.json", "train.py")
    done = server_of(config).run(folder, *command, processes=2, environment=cpu)
    return done, json.loads((folder / "found.json").read_text())


TORCHRUN = ("torch.distributed.run", "--nproc-per-node", "2")


@pytest.mark.slow
def test_a_right_script_in_two_processes(tmp_path: Path) -> None:
    done, found = started(tmp_path, SCRIPT, *TORCHRUN)
    assert done.returncode == 0
    assert found["findings"] == []
    assert found["notes"] == []
    assert found["updates"] == 12
    assert {"ranks::rows-shared", "ranks::weights-differ"} <= set(found["held"])
    assert done.stderr.count("nothing found") == 1, "one report for all ranks"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "old", "new"),
    [
        (
            "ranks::weights-differ",
            "cross_entropy(model(inputs)",
            "cross_entropy(accelerator.unwrap_model(model)(inputs)",
        ),
        ("ranks::rows-shared", "train_dl, eval_dl = accelerator", "_, eval_dl = accelerator"),
        ("metrics::rows-missing-or-repeated", "gather_for_metrics", "gather"),
    ],
)
def test_a_bug_of_several_processes(
    tmp_path: Path, check: str, old: str, new: str, pytestconfig: pytest.Config
) -> None:
    """huggingface/accelerate 350 is the last: ``gather`` gives 24 predictions for 22 rows."""
    assert SCRIPT.count(old) == 1
    done, found = forked(tmp_path, SCRIPT.replace(old, new), pytestconfig)
    assert done.status == 1
    assert [each["check"] for each in found["findings"]] == [check]
    assert found["findings"][0]["where"].startswith("train.py:")


@pytest.mark.nightly
def test_fewer_processes_than_asked_for(tmp_path: Path) -> None:
    launcher: tuple[str, ...] = ("accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_machines", "1")
    launcher = (*launcher, "--mixed_precision", "no")
    if installed("accelerate>=0.16"):
        launcher = (*launcher, "--dynamo_backend", "no")
    _done, found = started(tmp_path, SCRIPT, *launcher)
    assert [each["check"] for each in found["findings"]] == ["ranks::fewer-than-asked"]


def test_the_folder_between_ranks_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    folder = exchange_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert exchange_folder() == folder, "the other ranks find it"
    with monkeypatch.context() as again:
        again.setenv("TORCHELASTIC_RESTART_COUNT", "1")
        assert exchange_folder() != folder, "what a first attempt left is not the second's"
    folder.chmod(0o777)
    with pytest.raises(CannotTry, match="is not a folder of your own that others cannot open; remove it"):
        exchange_folder()
    folder.rmdir()
    (tmp_path / "theirs").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "theirs")
    with pytest.raises(CannotTry, match="is not a folder of your own"):
        exchange_folder()
