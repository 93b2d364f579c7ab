"""Loads what a script saved, in a process of its own, as its user would: ``python -m harness.watch.reload FILE``.

FILE is what :func:`loaded_again` has written: what is to be loaded, and what it is to be asked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from harness.findings import first_line, shortened
from harness.processes import started
from harness.torch_objects import in_half_precision
from harness.watch.events import logits_in

PATIENCE = 120.0
"""Seconds that it may take."""

TALK = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
"""What a chat template is asked to write."""


@dataclass(frozen=True)
class Order:
    """What is to be loaded from one path."""

    model: bool = False
    named: str | None = None
    """The model's class of transformers, without an adapter around it."""
    labels: int | None = None
    """How many labels its head has, where it has one that is made anew for an adapter's base."""
    loader: str | None = None
    """``module:function`` of the user's own, which loads the model in place of transformers."""
    found_in: str | None = None
    """The folder in which that module is found."""
    texts: Sequence[str] = ()
    """What the tokenizer is asked; none where there is no tokenizer."""
    template: bool = False
    """Whether it has a chat template."""


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
    tokens: list[list[int]] = field(default_factory=list)
    """What the tokenizer makes of each of the texts."""
    talk: str | None = None
    """What its chat template makes of :data:`TALK`."""
    resized: int | None = None
    """The rows of the embeddings that an adapter's base was given, as many as the tokenizer beside it has tokens."""
    misfit: bool = False
    """Whether it could not be loaded because its tensors have other shapes than the model's."""
    error: str | None = None
    """Why the model could not be loaded, or asked."""
    tokenizer_error: str | None = None


def loaded_again(
    path: str, order: Order, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> Reloaded:
    """What is loaded from ``path`` says; a model is called with ``args`` and ``kwargs``."""
    with TemporaryDirectory(prefix="harness-reload-") as name:
        orders = Path(name, "orders.json")
        orders.write_text(json.dumps({"path": path, **asdict(order)}), encoding="utf-8")
        torch.save({"args": list(args), "kwargs": dict(kwargs or {})}, Path(name, "inputs.pt"))
        command = [sys.executable, "-P", "-m", __name__, str(orders)]
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        # What the script loaded from a hub is in its cache, and asking for what is not there takes half a minute.
        offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
        with started(command, env=offline, **quiet) as process:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                return _failed(f"it takes more than {PATIENCE:.0f} s")
        found = Path(name, "found.json")
        if not found.exists():
            return _failed(f"the process that loads it ended with status {process.returncode}")
        logits = Path(name, "logits.pt")
        told = json.loads(found.read_text(encoding="utf-8"))
        return Reloaded(torch.load(logits, weights_only=True) if logits.exists() else None, **told)


def _failed(why: str) -> Reloaded:
    return Reloaded(error=why, tokenizer_error=why)


def written(tokenizer: Any) -> str | None:
    """What a tokenizer's chat template makes of :data:`TALK`; None if it makes nothing of it."""
    try:
        return str(tokenizer.apply_chat_template(TALK, tokenize=False))
    except Exception:  # noqa: BLE001 - a template of another kind of talk says so in its own way
        return None


def main(file: str) -> None:
    """Load what the orders in ``file`` say, and write beside it what came of it."""
    given, home = json.loads(Path(file).read_text(encoding="utf-8")), Path(file).parent
    path, order = given.pop("path"), Order(**given)
    told: dict[str, Any] = {}
    if order.model:
        try:
            model, told = _load(path, order)
            model.eval()
            with torch.no_grad():
                inputs = torch.load(home / "inputs.pt", weights_only=True)
                logits = logits_in(model(*inputs["args"], **inputs["kwargs"]))
            if logits is not None:
                torch.save(logits.float(), home / "logits.pt")
        except Exception as error:  # noqa: BLE001 - whatever it is, it could not be loaded
            text = " ".join(str(error).split())  # the first line may only say that reasons follow
            told = {"error": f"{type(error).__name__}: {shortened(text, 200)}"}
            told["misfit"] = order.loader is None and isinstance(error, RuntimeError) and "mismatch" in text
    if order.texts:
        try:
            tokenizer = import_module("transformers").AutoTokenizer.from_pretrained(path)
            told["tokens"] = [tokenizer(text)["input_ids"] for text in order.texts]
            told["talk"] = written(tokenizer) if order.template else None
        except Exception as error:  # noqa: BLE001 - the same
            told["tokenizer_error"] = first_line(error)
    (home / "found.json").write_text(json.dumps(told), encoding="utf-8")


def _load(path: str, order: Order) -> tuple[Any, dict[str, Any]]:
    told: dict[str, Any] = {}
    if order.loader is not None and order.found_in is not None:
        sys.path.insert(0, order.found_in)
        module, _, function = order.loader.partition(":")
        model = getattr(import_module(module), function)(path)
    elif Path(path, "adapter_config.json").exists():
        about = json.loads(Path(path, "adapter_config.json").read_text(encoding="utf-8"))
        more = {} if order.labels is None else {"num_labels": order.labels}
        torch.manual_seed(0)
        kind = getattr(import_module("transformers"), str(order.named))
        base, info = kind.from_pretrained(about["base_model_name_or_path"], output_loading_info=True, **more)
        tokens = _tokens_beside(path)
        if tokens is not None and tokens > base.get_input_embeddings().num_embeddings:
            base.resize_token_embeddings(tokens)  # as PEFT's AutoPeftModel does
            told["resized"] = tokens
        model = import_module("peft").PeftModel.from_pretrained(base, path)
        kept = import_module("peft").utils.load_peft_weights(path, device="cpu")
        told["missing"] = sorted(name for name in info["missing_keys"] if not any(name in each for each in kept))
    else:
        kind = getattr(import_module("transformers"), str(order.named))
        model, info = kind.from_pretrained(path, output_loading_info=True)
        told = {name: sorted(info[f"{name}_keys"]) for name in ("missing", "unexpected")}
    told["coarse"] = in_half_precision(model)
    return model, told


def _tokens_beside(path: str) -> int | None:
    """How many tokens the tokenizer has that lies beside an adapter; None where there is none."""
    if not any(Path(path, name).exists() for name in ("tokenizer.json", "tokenizer_config.json")):
        return None
    return len(import_module("transformers").AutoTokenizer.from_pretrained(path))


if __name__ == "__main__":
    main(sys.argv[1])
