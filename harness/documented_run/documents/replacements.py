"""What the documents' code becomes where a version no longer runs it: the replacement that is documented for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Replacement:
    """``pattern`` becomes ``by`` (as in :func:`re.sub`)."""

    pattern: str
    by: str | Callable[[re.Match[str]], str]
    says: str
    source: str
    """Where the change, or its remedy, is documented."""


def _from_elsewhere(module: str, name: str, line: str) -> Callable[[re.Match[str]], str]:
    """An import of several names, without one that is elsewhere now; ``line`` imports that."""

    def imports(found: re.Match[str]) -> str:
        names = re.sub(r"#.*", "", found["names"]).strip().strip("()").split(",")
        others = [each.strip() for each in names if each.strip() not in ("", name)]
        lines = [line, f"from {module} import {', '.join(others)}"] if others else [line]
        return "\n".join(found["indent"] + each for each in lines) + (found["comment"] or "")

    return imports


def _import_of(module: str, name: str) -> str:
    names = rf"\([^)]*\b{name}\b[^)]*\)|[^(\n#;]*\b{name}\b[^(\n#;]*?"
    return rf"(?m)^(?P<indent>[ \t]*)from {module} import (?P<names>{names})(?P<comment>[ \t]*#.*)?$"


REPLACEMENTS = (
    Replacement(
        _import_of("transformers", "AdamW"),
        _from_elsewhere("transformers", "AdamW", "from torch.optim import AdamW"),
        "from torch.optim import AdamW",
        "huggingface/transformers#36177; gone from 4.50 on",
    ),
    Replacement(
        r"\bevaluation_strategy=",
        "eval_strategy=",
        "eval_strategy=",
        "huggingface/transformers#30190; gone from 4.51 on",
    ),
    Replacement(
        r"(\bTrainer\((?:[^()]|\([^()]*\))*?)\btokenizer=",
        r"\1processing_class=",
        "processing_class=",
        "huggingface/transformers#32385; gone from Trainer from 5.0 on",
    ),
    Replacement(
        _import_of("datasets", "load_metric"),
        _from_elsewhere("datasets", "load_metric", "from evaluate import load as load_metric"),
        "evaluate.load",
        "huggingface/course#285; gone from datasets 3.0 on",
    ),
    Replacement(
        r"""raw_datasets\[(["'])train\1\]\[(["'])(sentence[12])\2\](?!\[)""",
        r'raw_datasets["train"]["\3"][:]',
        'raw_datasets["train"]["sentence1"][:]',
        "huggingface/course#1181; a Column from datasets 4.0 on",
    ),
    Replacement(
        r"""load_dataset\((["'])glue\1""",
        'load_dataset("nyu-mll/glue"',
        'load_dataset("nyu-mll/glue", "mrpc")',
        "huggingface/datasets#8612; the bare name is refused from huggingface_hub 1.16 on",
    ),
)


def replaced(code: str, wanted: Iterable[Replacement] = REPLACEMENTS) -> tuple[str, list[Replacement]]:
    """The code with all replacements that apply to it, and which they were."""
    made = []
    for replacement in wanted:
        new = re.sub(replacement.pattern, replacement.by, code)
        if new != code:
            code = new
            made.append(replacement)
    return code, made
