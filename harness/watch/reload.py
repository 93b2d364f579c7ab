"""Loads what a script saved, in a process of its own, as its user would: ``python -m harness.watch.reload FILE``.

FILE is what :func:`loaded_again` has written: the folder, the class, and what the model is to be asked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from harness.findings import first_line
from harness.processes import started

PATIENCE = 120.0
"""Seconds that it may take."""


@dataclass(frozen=True)
class Reloaded:
    """What came of it."""

    logits: torch.Tensor | None = None
    missing: list[str] = field(default_factory=list)
    """Tensors of the model that the folder does not have: they are random, or what the base has."""
    unexpected: list[str] = field(default_factory=list)
    """Tensors of the folder that the model does not have."""
    coarse: bool = False
    """Whether weights are in half precision."""
    error: str | None = None
    """Why it could not be loaded, or asked."""


def loaded_again(folder: str, named: str, labels: int | None, inputs: Mapping[str, torch.Tensor]) -> Reloaded:
    """What a model says that is loaded from a folder.

    Args:
        named: the class of transformers, without an adapter around it.
        labels: how many labels its head has, where it has one that is made anew for an adapter's base.
        inputs: what it is asked.
    """
    with TemporaryDirectory(prefix="harness-reload-") as name:
        orders = Path(name, "orders.json")
        orders.write_text(json.dumps({"folder": folder, "class": named, "labels": labels}), encoding="utf-8")
        torch.save(dict(inputs), Path(name, "inputs.pt"))
        command = [sys.executable, "-P", "-m", __name__, str(orders)]
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        # What the script loaded from a hub is in its cache, and asking for what is not there takes half a minute.
        offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
        with started(command, env=offline, **quiet) as process:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                return Reloaded(error=f"it takes more than {PATIENCE:.0f} s")
        found = Path(name, "found.json")
        if not found.exists():
            return Reloaded(error=f"the process that loads it ended with status {process.returncode}")
        logits = Path(name, "logits.pt")
        told = json.loads(found.read_text(encoding="utf-8"))
        return Reloaded(torch.load(logits, weights_only=True) if logits.exists() else None, **told)


def main(file: str) -> None:
    orders, home = json.loads(Path(file).read_text(encoding="utf-8")), Path(file).parent
    told: dict[str, Any]
    try:
        model, told = _load(orders["folder"], orders["class"], orders["labels"])
        model.eval()
        with torch.no_grad():
            logits = model(**torch.load(home / "inputs.pt", weights_only=True)).logits
        torch.save(logits.float(), home / "logits.pt")
    except Exception as error:  # noqa: BLE001 - whatever it is, it could not be loaded
        told = {"error": first_line(error)}
    (home / "found.json").write_text(json.dumps(told), encoding="utf-8")


def _load(folder: str, named: str, labels: int | None) -> tuple[Any, dict[str, Any]]:
    told: dict[str, Any] = {}
    if Path(folder, "adapter_config.json").exists():
        about = json.loads(Path(folder, "adapter_config.json").read_text(encoding="utf-8"))
        more = {} if labels is None else {"num_labels": labels}
        torch.manual_seed(0)
        kind = getattr(import_module("transformers"), named)
        base, info = kind.from_pretrained(about["base_model_name_or_path"], output_loading_info=True, **more)
        model = import_module("peft").PeftModel.from_pretrained(base, folder)
        kept = import_module("peft").utils.load_peft_weights(folder, device="cpu")
        told["missing"] = sorted(name for name in info["missing_keys"] if not any(name in each for each in kept))
    else:
        model, info = getattr(import_module("transformers"), named).from_pretrained(folder, output_loading_info=True)
        told = {name: sorted(info[f"{name}_keys"]) for name in ("missing", "unexpected")}
    told["coarse"] = any(p.is_floating_point() and p.element_size() < 4 for p in model.parameters())
    return model, told


if __name__ == "__main__":
    main(sys.argv[1])
