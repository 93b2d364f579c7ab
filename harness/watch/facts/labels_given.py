"""Labels given: which tokens of a language model's rows carry a loss, by the labels that it is given in training.

What the model makes of them is :mod:`harness.watch.facts.next_tokens`'s to say; here it is asked no more than which
places have a label, whether or not logits come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness.watch.events import IGNORED, Backward, BackwardBegins, Fact, Forward
from harness.watch.facts.next_tokens import GIVEN
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser

GENERATES = ("CausalLM", "LMHead", "ConditionalGeneration", "Seq2SeqLM")
"""What is in the name of a class of transformers, or of PEFT, whose labels are the text that it is to say."""

HIDES = "MaskedLM"
"""What is in the name of one whose labels are the words behind its masks."""


def predicts_in_place(forward: Forward, labels: torch.Tensor) -> bool:
    """Whether a model is asked for the token of each place, and not for the next one: by the targets of the loss that
    it computes itself, or else by the name of its class."""
    targets = [call.target for call in forward.losses if not call.target.is_floating_point()]
    if not targets:
        return not any(word in type(forward.model).__name__ for word in GENERATES)
    in_place = labels.flatten(), labels[labels != IGNORED]  # some models are asked for the masked places alone
    return any(torch.equal(target.flatten(), each) for target in targets for each in in_place)


class Labelled(Fact):
    """The rows of one forward, and which of their tokens carry a loss. ``where`` the model was called."""

    needs = "language model that is given labels"
    in_windows = "first"
    forward: Forward
    tokens: torch.Tensor
    """(rows, tokens): what the labels are about: of a decoder the labels themselves, 0 where there is none."""
    labels: torch.Tensor
    """Label of each token in the shape of ``tokens``: the token itself, and -100 where it carries no loss."""
    real: torch.Tensor
    """Mask in the shape of ``tokens``: what is no padding."""
    decoder: bool = False
    """Whether the labels are a decoder's, whose input is another text."""

    @property
    def counted(self) -> torch.Tensor:
        return self.labels != IGNORED


class LabelsGiven(Recogniser):
    """What the backward pass at hand teaches by labels, as far as its tensors are looked at."""

    makes = (Labelled,)

    def begin(self) -> None:
        self.labelled: list[Labelled] = []

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self.labelled = []
        if self.monitor.is_sampled():
            self.labelled = [each for forward in event.forwards if forward.gradients for each in labelled(forward)]
            for each in self.labelled:
                self.tell(each)

    def on_backward(self, event: Backward) -> None:
        self.labelled = []


_generates: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
"""What was answered before: a large model has thousands of modules, and is asked for in each update."""

_has_decoder: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
"""The same."""


def generates(model: nn.Module) -> bool:
    """Whether a model of transformers, also within others, learns to say a text."""
    if model not in _generates:
        named = {type(module).__name__ for module in model.modules()}
        hides = any(HIDES in name for name in named)
        _generates[model] = not hides and any(part in name for name in named for part in GENERATES)
    return _generates[model]


def has_decoder(model: nn.Module) -> bool:
    """Whether a model of transformers, also within others, says a text of its own of the one that it is given."""
    if model not in _has_decoder:
        configs = (getattr(module, "config", None) for module in model.modules())
        _has_decoder[model] = any(getattr(each, "is_encoder_decoder", False) is True for each in configs)
    return _has_decoder[model]


def labelled(forward: Forward) -> Iterator[Labelled]:
    """What a model that learns to say a text was given labels for; nothing for others."""
    given = next((name for name in GIVEN if name in forward.tensors), None)
    if given is None or not generates(forward.model):
        return
    labels, tokens = forward.tensors[given], forward.tensors.get("input_ids")
    if labels.dim() != 2 or labels.is_floating_point():
        return
    labels = on_host(labels)
    if has_decoder(forward.model):
        text = labels.masked_fill(labels == IGNORED, 0)
        real, where = labels != IGNORED, forward.where
        yield Labelled(forward=forward, tokens=text, labels=labels, real=real, decoder=True, where=where)
    elif tokens is not None and tokens.shape == labels.shape:
        # The first token is the target of no place; what is shifted already is by the place that says it.
        behind = labels[:, :-1] if given == "shift_labels" else labels[:, 1:]
        labels = torch.cat((torch.full_like(labels[:, :1], IGNORED), behind), dim=1)
        tokens = on_host(tokens)
        real, where = real_tokens(forward, tokens), forward.where
        yield Labelled(forward=forward, tokens=tokens, labels=labels, real=real, where=where)


def real_tokens(forward: Forward, tokens: torch.Tensor) -> torch.Tensor:
    """Mask in the shape of ``tokens``: what the attention mask does not hide; all of them where there is none of their
    shape."""
    mask = forward.tensors.get("attention_mask")
    if mask is None or mask.shape != tokens.shape:
        return torch.ones_like(tokens, dtype=torch.bool)
    return (on_host(mask) if tokens.device.type == "cpu" else mask) != 0
