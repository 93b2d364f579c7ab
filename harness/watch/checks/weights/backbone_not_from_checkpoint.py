from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.events import FromPretrained

MAX_NEW = 0.1
"""Largest share of a backbone's tensors that may be newly initialised. A pooler or a position table is far below it,
and a missing layer of a usual model above."""

MAX_ADDED = 0.5
"""Largest share of a layer's tensors that may be an addition to what the checkpoint has: a decoder's cross-attention is
four in ten. Where names or classes do not fit, nearly all are new."""


class BackboneNotFromCheckpoint(Check):
    """Parts of a model's backbone are newly initialised, because they do not match the checkpoint.

    ## Why is this a bug?
    Fine-tuning builds on the backbone's weights. If their names or shapes do not match (another class, a prefix,
    another number of layers or words), `from_pretrained` initialises them at random and says so in one warning among
    others. The loss falls either way.

    ## What to do
    Compare the names in the checkpoint with those of the model: look for a prefix, another class or another version.

    ## When it is right
    A new head, a new pooler and tied weights are not reported. Neither are parts that each layer has in addition to the
    checkpoint's (cross-attention, adapters). For weights that are new on purpose, such as a layer that is added and
    then trained for long, use an `--ignore`.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/model#transformers.PreTrainedModel.from_pretrained
    """

    needs = "pretrained checkpoint"

    def judge(self, event: FromPretrained) -> Verdict:
        info, backbone = event.info, _backbone(event.model)
        mismatched = set(_names(info.get("mismatched_keys", ())))
        lacking = set(_names(info.get("missing_keys", ()))) | mismatched
        tied = set(getattr(event.model, "all_tied_weights_keys", None) or ())
        new = [name for name in backbone if name in lacking and name not in tied and "pooler" not in name]
        new = _without_additions(new, backbone)
        resized = mismatched & set(backbone)
        if not backbone:
            return NOTHING_TO_JUDGE
        if len(new) <= MAX_NEW * len(backbone) and not resized:
            return HELD
        new = new or sorted(resized)
        return Found(
            expected="a checkpoint that contains the model's backbone",
            observed=f"{len(new)} of the backbone's {len(backbone)} tensors are newly initialised, such as {new[0]}; "
            f"{len(list(_names(info.get('unexpected_keys', ()))))} tensors of the checkpoint are not used",
        )


def _backbone(model: Any) -> list[str]:
    """The names of its parameters: all of them, where the model has no head."""
    prefix = getattr(model, "base_model_prefix", "")
    headed = bool(prefix) and hasattr(model, prefix)
    return [name for name, _ in model.named_parameters() if not headed or name.startswith(f"{prefix}.")]


def _without_additions(new: list[str], backbone: list[str]) -> list[str]:
    """The new tensors but those that every layer has in addition to the checkpoint's: cross-attention, adapters."""
    known = {_in_every_layer(name) for name in set(backbone) - set(new)}
    every = {_in_every_layer(name) for name in backbone}
    if len(every - known) > MAX_ADDED * len(every):
        return new
    return [name for name in new if _in_every_layer(name) in known]


def _in_every_layer(name: str) -> str:
    return ".".join("N" if part.isdigit() else part for part in name.split("."))


def _names(keys: Iterable[Any]) -> Iterable[str]:
    yield from (key if isinstance(key, str) else str(key[0]) for key in keys)
