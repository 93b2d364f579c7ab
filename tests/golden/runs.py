"""Ten runs of the command line, whose JSON and terminal lines are kept: what they say may not change unseen.

``python -m tests.golden.runs`` makes them anew and writes tests/golden/*.json; look at the difference before it is
committed. What depends on the machine or the clock is left out, and losses are kept to four digits.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.checks.corpus import all_cases
from tests.checks.server import CHECKPOINT, make_data

FOLDER = Path(__file__).parent

CHECKED = (
    "flat",
    "trainer",
    "flat_never_clears_gradients",
    "accumulating_does_not_scale_the_loss",
    "raw_torch_takes_the_data_of_the_embeddings",
    "functions_stops_early",
)
"""Scripts of the corpus that ``harness check`` is run on."""

RECIPE = """
from harness.recipe import RECIPES

SMALL = RECIPES["tiny"].with_(name="small", dataset="tests/small", data=r"{data}", epochs=2)
"""

RUNS = {
    "run-plain": ("recipe.py:SMALL", "--loop", "plain"),
    "run-accelerate": ("recipe.py:SMALL", "--loop", "accelerate"),
    "run-trainer": ("recipe.py:SMALL", "--loop", "trainer"),
    "run-stops": ("recipe.py:SMALL", "--checkpoint", "checkpoint"),
}
"""Options of ``harness run``; the last has a checkpoint without its weights."""


def golden(name: str, folder: Path) -> dict[str, Any]:
    """What the command says today."""
    data = folder / "data"
    if not data.exists():
        make_data(data)
        (folder / "recipe.py").write_text(RECIPE.format(data=data))
        broken = folder / "checkpoint"
        broken.mkdir()
        for file in CHECKPOINT.iterdir():
            if not file.name.endswith(".safetensors"):
                (broken / file.name).write_bytes(file.read_bytes())
    if name in RUNS:
        spec, *options = RUNS[name]
        done, found = _harness(folder, "run", "--recipe", spec, "--baselines", "none", "--output", name, *options)
        return {"status": done.returncode, "terminal": _lines(done, folder), "json": found and _of_run(found)}
    case = next(each for each in all_cases() if each.name == name)
    (folder / case.script).write_text(case.text)
    done, found = _harness(folder, "check", case.script, str(data), str(CHECKPOINT))
    return {"status": done.returncode, "terminal": _lines(done, folder), "json": found and _of_check(found)}


def _harness(folder: Path, command: str, *arguments: str) -> tuple[subprocess.CompletedProcess[str], Any]:
    file = folder / "found.json"
    file.unlink(missing_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "error", "GITHUB_ACTIONS": "false"}
    started = [sys.executable, "-m", "harness", command, "--json", str(file), *arguments]
    done = subprocess.run(started, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    return done, json.loads(file.read_text()) if file.exists() else None


def _lines(done: subprocess.CompletedProcess[str], folder: Path) -> list[str]:
    """What the harness itself says on the terminal, without times and paths."""
    text = (done.stdout + done.stderr).replace(str(folder), "FOLDER").replace(str(CHECKPOINT.parents[1]), "HARNESS")
    lines = [re.sub(r" +\d+\.\d s|\d+\.\d s", " S", line).rstrip() for line in text.splitlines()]
    noise = re.compile(r"it/s|\?it|Map:|^{|warn|Warn|^\s*$|train_loss|epoch|accuracy \d|apart|moves parameters|  Trainer|up to|nothing$")
    return [line for line in lines if not noise.search(line)]


def _of_check(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in ("seconds", "script")}


def _of_run(found: dict[str, Any]) -> dict[str, Any]:
    kept = ("schema", "updates", "updates_planned", "interrupted", "findings", "checks", "rows", "model")
    losses = [float(f"{loss:.4g}") for loss in found["curves"]["loss"]]
    return {**{name: found[name] for name in kept}, "keys": sorted(found), "loss": losses, "lr": found["curves"]["lr"]}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in (*CHECKED, *RUNS):
            text = json.dumps(golden(name, Path(folder)), indent=1) + "\n"
            (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
