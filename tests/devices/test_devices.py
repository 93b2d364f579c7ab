"""On a second device the commands say what they say on the CPU, and no check fails.

Each way to use a device is a script of its own, right and with a bug; the examples of all checks are moved there
(tests.devices.moved) and must be found as on the CPU.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.checks.conftest import must_be_as_said
from tests.checks.corpus import Case, all_cases
from tests.devices.watched import WAYS, OnDevice, device_server, watch
from tests.server import ROOT
from tests.watch.test_teaching import SCRIPT as LANGUAGE_MODEL

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.devices import second

{begin}
torch.manual_seed(0)
rows = torch.randn(256, 8{on_host})
labels = (rows[:, :2].sum(1) > 0).float()
train = DataLoader(TensorDataset(rows[:192], labels[:192]), batch_size=16, shuffle=True)
held_out = DataLoader(TensorDataset(rows[192:], labels[192:]), batch_size=16)
model = {model}
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(3):
    model.train()
    for given, label in train:
        given, label = given.to("second"), label.to("{label}")
        with {around}:
            loss = nn.functional.binary_cross_entropy_with_logits(model(given).squeeze(1), label)
        {clear}
        loss.backward()
        optimizer.step()
    model.eval()
    hits = 0
    with torch.no_grad():
        for given, label in held_out:
            likely = {likely}
            hits += ((likely > 0.5) == {compared}.bool()).sum().item()
    print(epoch, loss.item(), hits / 64)
print("parameters on", sorted({{str(each.device) for each in model.parameters()}}))
"""

NETWORK = "nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))"
PLAIN = {
    "begin": "",
    "on_host": "",
    "model": f'{NETWORK}.to("second")',
    "label": "second",
    "around": "torch.no_grad() if False else torch.enable_grad()",
    "clear": "optimizer.zero_grad()",
    "likely": 'model(given.to("second")).squeeze(1).sigmoid()',
    "compared": 'label.to("second")',
}
PARTED = """\
class Parted(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16).to("second:0")
        self.last = nn.Linear(16, 1).to("second:1")

    def forward(self, given):
        return self.last(self.first(given).relu().to("second:1"))

"""
USES: Mapping[str, tuple[dict[str, str], list[str]]] = {
    "batches and model": ({}, ["second:0"]),
    "on the host before it is scored": (
        {"likely": 'model(given.to("second")).squeeze(1).sigmoid().cpu()', "compared": "label"},
        ["second:0"],
    ),
    "a default device": (
        {"begin": 'torch.set_default_device("second")', "model": NETWORK},
        ["second:0"],
    ),
    "a device around the model": (
        {"begin": 'with torch.device("second"):\n    made = ' + NETWORK, "model": "made"},
        ["second:0"],
    ),
    "autocast": ({"around": 'torch.autocast("second", dtype=torch.bfloat16)'}, ["second:0"]),
    "gradients that stay": ({"clear": "optimizer.zero_grad(set_to_none=False)"}, ["second:0"]),
    "parted over two": (
        {
            "begin": PARTED,
            "model": "Parted()",
            "label": "second:1",
            "compared": 'label.to("second:1")',
        },
        ["second:0", "second:1"],
    ),
}
"""What is changed of the script, and where the parameters lie."""


def script(use: str, **changed: str) -> str:
    return SCRIPT.format(**PLAIN | USES[use][0] | changed)


def checked(text: str, folder: Path, config: pytest.Config) -> dict[str, Any]:
    (folder / "train.py").write_text(text, encoding="utf-8")
    done = device_server(config).run(folder, "check", "--json=found.json", "train.py")
    assert (folder / "found.json").exists(), done.stderr
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    assert found["crashed"] is None, done.stderr
    assert found["not_looked_at"] == []
    return found | {"said": done.stdout}


def each_use(*first: str) -> list[Any]:
    """Some guard every change; the others are nightly."""
    return [each if each in first else pytest.param(each, marks=pytest.mark.nightly) for each in USES]


@pytest.mark.slow
@pytest.mark.parametrize("use", each_use("on the host before it is scored"))
def test_a_right_script_is_not_flagged(use: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    found = checked(script(use), tmp_path, pytestconfig)
    assert f"parameters on {USES[use][1]}" in found["said"]
    assert found["findings"] == []
    assert found["updates"] == 36


@pytest.mark.slow
@pytest.mark.parametrize("use", each_use("a default device"))
def test_gradients_that_are_never_cleared_are_named(use: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    found = checked(script(use, clear="pass"), tmp_path, pytestconfig)
    assert [each["check"] for each in found["findings"]] == ["gradients::not-cleared"]


@pytest.mark.slow
def test_a_page_is_that_of_the_cpu(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    pages = []
    for name in ("second", "cpu"):
        folder = tmp_path / name
        folder.mkdir()
        text = script("batches and model").replace('"second"', f'"{name}"')
        (folder / "train.py").write_text(text, encoding="utf-8")
        pages.append(device_server(pytestconfig).run(folder, "describe", "train.py"))
    on_device, on_cpu = pages
    assert on_device.status == on_cpu.status == 0, on_device.stderr
    assert on_device.stdout.replace("float32, second", "float32, cpu") == on_cpu.stdout


SAVING = """\
import os
import torch
from torch import nn

from tests.devices import second

torch.manual_seed(0)
rows = torch.randn(64, 8)
labels = (rows[:, 0] > 0).long()
model = nn.Linear(8, 2).to("second")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
begun = 0
if os.path.exists("last.pt"):
    state = torch.load("last.pt", weights_only=True)
    model.load_state_dict(state["model"])
    {restored}
    begun = state["epoch"]
for epoch in range(begun, 3):
    for first in range(0, 64, 16):
        given, label = rows[first : first + 16].to("second"), labels[first : first + 16].to("second")
        loss = nn.functional.cross_entropy(model(given), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    state = {{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}}
    torch.save(state, "new.pt")
    os.replace("new.pt", "last.pt")
"""
RESTORED = 'optimizer.load_state_dict(state["optimizer"])'


@pytest.mark.nightly
def test_a_kill_is_survived_there_or_not(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    found = {}
    for name, restored in (("whole", RESTORED), ("without", "pass")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "train.py").write_text(SAVING.format(restored=restored), encoding="utf-8")
        words = ("resume", "--kills", "1", "--json=found.json", "train.py")
        done = device_server(pytestconfig).run(folder, *words, environment={"PYTHONPATH": str(ROOT)})
        assert (folder / "found.json").exists(), done.stderr
        found[name] = json.loads((folder / "found.json").read_text())["findings"]
    assert found["whole"] == []
    assert "resume::optimizer-state-lost" in {each["check"] for each in found["without"]}, found["without"]


@pytest.mark.nightly
def test_two_runs_part_where_they_do(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    text = SAVING.format(restored=RESTORED)
    (tmp_path / "one.py").write_text(text, encoding="utf-8")
    (tmp_path / "other.py").write_text(text.replace("lr=1e-2", "lr=2e-2"), encoding="utf-8")
    there = {"PYTHONPATH": str(ROOT)}
    same = device_server(pytestconfig).run(tmp_path, "compare", "one.py", "one.py", environment=there)
    assert same.status == 0, same.stdout + same.stderr
    apart = device_server(pytestconfig).run(tmp_path, "compare", "one.py", "other.py", environment=there)
    assert apart.status == 1, apart.stdout + apart.stderr
    assert "lr" in apart.stdout


@pytest.mark.nightly
def test_a_baseline_of_there_holds_there_and_names_another_rate(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    text, there = script("batches and model"), {"PYTHONPATH": str(ROOT)}
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    named = '[[tool.harness.training]]\nname = "small"\nscript = "train.py"\n'
    (tmp_path / "pyproject.toml").write_text(named, encoding="utf-8")
    server = device_server(pytestconfig)
    recorded = server.run(tmp_path, "baseline", "record", "small", environment=there)
    assert recorded.status == 0, recorded.stdout + recorded.stderr
    same = server.run(tmp_path, "baseline", "compare", "small", environment=there)
    assert same.status == 0, same.stdout + same.stderr
    (tmp_path / "train.py").write_text(text.replace("lr=1e-2", "lr=2e-2"), encoding="utf-8")
    changed = server.run(tmp_path, "baseline", "compare", "small", environment=there)
    assert changed.status == 1, changed.stdout + changed.stderr
    assert "learning rate" in changed.stdout


@pytest.mark.slow
def test_the_tokens_that_carry_a_loss_are_those_of_the_cpu(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    shown = []
    for name in ("second", "cpu"):
        moved = LANGUAGE_MODEL.replace("GPT2Config(**size))", f'GPT2Config(**size)).to("{name}")')
        moved = moved.replace("model(**batch)", f'model(**{{key: each.to("{name}") for key, each in batch.items()}})')
        assert moved.count(f'"{name}"') == 2
        (tmp_path / "train.py").write_text(f"from tests.devices import second\n{moved}", encoding="utf-8")
        shown.append(device_server(pytestconfig).run(tmp_path, "tokens", "--rows", "3", "train.py"))
    on_device, on_cpu = shown
    assert on_device.status == on_cpu.status == 0, on_device.stderr
    assert "  taught         4  assistant  it is paris </s>" in on_device.stdout.splitlines()
    assert on_device.stdout == on_cpu.stdout


# The examples of all checks

NEW_PARAMETERS = "on this kind of device a module that is moved gets new parameters, on a GPU it keeps its own"
CPUS = "its autocast is the CPU's, which casts no weights there"
NOT_FOLLOWED = "a permutation is not followed to the device that it is moved to"
SEEN_OTHERWISE = {
    "model::evaluated-untrained/bad.py": NEW_PARAMETERS,
    "model::evaluated-untrained/raw_torch_evaluates_a_new_model": NEW_PARAMETERS,
    "parameters::adapter-frozen/bad.py": NEW_PARAMETERS,
    "parameters::adapter-frozen/good.py": NEW_PARAMETERS,
    "parameters::new-head-frozen/bad.py": NEW_PARAMETERS,
    "weights::initialised-again/bad.py": NEW_PARAMETERS,
    "weights::initialised-again/functions_resets_what_was_loaded": NEW_PARAMETERS,
    "weights::cast-before-update/bad.py": CPUS,
    "weights::cast-before-update/good.py": CPUS,
    "rows::shuffled-apart/bad.py": NOT_FOLLOWED,
    "rows::shuffled-apart/good.py": NOT_FOLLOWED,
}
"""By example, why something else is found than on the CPU."""

OF_ONE_PROCESS = [case for case in all_cases() if case.processes == 1]
EXAMPLES = [case for case in OF_ONE_PROCESS if case.kind in ("bad", "good")]
ASKING = [case for case in OF_ONE_PROCESS if case.kind not in ("bad", "good") and "cuda" in case.text]
ASKING = [case for case in ASKING if case.script != "flat.py"]
"""Scripts of the corpus, right and with a bug, that ask whether there is CUDA, but for the one that moves its model
after its optimizer was made, which then trains nothing on this kind of device."""


def name_of(case: Case) -> str:
    return f"{case.check}/{case.name}"


@pytest.mark.nightly
@pytest.mark.parametrize("case", [pytest.param(case, id=name_of(case)) for case in [*EXAMPLES, *ASKING]])
def test_an_example_is_found_there_as_on_the_cpu(case: Case, pytestconfig: pytest.Config) -> None:
    if case.needed:
        pytest.skip(f"needs {' or '.join(case.needed)}")
    ran = first_that_runs(case, pytestconfig)
    if ran is None:
        pytest.skip("as the script is written, what it makes and what it is given do not meet on a device")
    if why := SEEN_OTHERWISE.get(name_of(case)):
        with pytest.raises(AssertionError):
            must_be_as_said(case, ran.verdict)
        pytest.xfail(why)
    must_be_as_said(case, ran.verdict)


def first_that_runs(case: Case, config: pytest.Config) -> OnDevice | None:
    """What is found in the first way of moving it in which the script runs, with all that is trained on the device."""
    for how in ("asked",) if "cuda" in case.text else WAYS:
        ran = watch(device_server(config), case, how)
        if ran.verdict.crashed is None and all(place.startswith("second") for place in ran.places):
            return ran
    return None
