"""Padding: how much of it the losses of tokens count, and whether it moves the positions of a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakSet

import torch
from torch import nn

from harness.watch.events import IGNORED, Backward, BackwardBegins, Fact, Forward, LossCall, positional
from harness.watch.facts.labels_given import generates, has_decoder
from harness.watch.facts.next_tokens import NextTokens, TokenLoss
from harness.watch.facts.tokens import Tokens, trailing
from harness.watch.facts.twins import LanguageTwin, differ, probing
from harness.watch.recogniser import Recogniser

MIN_IN_ROW = 2
"""Places of a row that are padding and count, from which on it is no end of the text that has the padding's id."""


class PaddingCounted(Fact):
    """A loss of tokens is differentiated whose padding is known. ``where`` it was computed."""

    needs = "labels of tokens"
    in_windows = "first"
    padding: int
    """Places that are padding, several of a row, and count in the loss."""
    counted: int
    """All places that count."""


class LeftPadded(Fact):
    """A language model is trained on rows that are padded on the left. ``where`` it was called."""

    needs = "language model with rows padded on the left"
    rows: int
    padded: int
    """Rows that are padded."""
    differs: bool = False
    """Whether a copy gives other logits, if positions begin at 0 with the text; where it is given none."""


def _padding_of(module: nn.Module) -> int | None:
    """The token that a model of transformers takes for padding, by its configuration."""
    found = getattr(getattr(module, "config", None), "pad_token_id", None)
    return found if isinstance(found, int) else None


class PaddingInLosses(Recogniser):
    makes = (PaddingCounted,)

    def begin(self) -> None:
        self._next_tokens = self.fact(NextTokens)
        self._tokens = self.fact(Tokens)
        self._in_loss: list[tuple[torch.Tensor, torch.Tensor, str | None]] = []
        """(rows, tokens): places whose logits have a gradient, and those that are padding; where it was called."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not event.at.sampled:
            return
        self._in_loss.clear()
        known = set[int]()
        for taught in self._next_tokens.taught:
            padding = _padding(taught) if taught.ahead and taught.time else None
            if padding is not None:
                known.add(taught.forward.number)
                self._look_at(taught.is_target & padding, taught.counted, taught.call, taught.where)
        for forward in event.forwards:
            labels = forward.tensors.get("labels")
            calls = [call for call in event.losses if call.function == "cross_entropy" and _same(call, labels)]
            if labels is not None and len(calls) == 1:
                self._look_at(*self._labelled(forward, labels, calls[0]), calls[0], calls[0].where)
            elif labels is None and forward.number not in known:
                self._wait_for_gradient(forward, event.losses)

    def on_backward(self, event: Backward) -> None:
        for in_loss, padded, where in self._in_loss:
            self._look_at(padded, in_loss, None, where)
        self._in_loss.clear()

    def _wait_for_gradient(self, forward: Forward, losses: Sequence[LossCall]) -> None:
        """Of a loss that nobody knows, what has a part in it is what has a gradient."""
        logits, padding = forward.logits, self._hidden(forward)
        if padding is None or logits is None or not logits.requires_grad or logits.is_leaf:
            return
        embeddings = [each for each in forward.model.modules() if isinstance(each, nn.Embedding)]
        of_words = logits.shape[-1] in {each.num_embeddings for each in embeddings}
        if not of_words and not any(call.of_classes and call.target.numel() == padding.numel() for call in losses):
            return  # the classes may be the places, as where an answer begins
        where = forward.where  # a hook that held the forward would keep the graph for good

        def look(gradient: torch.Tensor) -> None:
            in_loss = (gradient.detach() != 0).any(-1)
            self._in_loss.append((in_loss, in_loss & padding, where))

        logits.register_hook(self.monitor.guarded(self, look))  # type: ignore[no-untyped-call]

    def _hidden(self, forward: Forward) -> torch.Tensor | None:
        """(rows, tokens): the padding of a model's only text, but for what the last token before it says; None where
        there is none, or nobody says what padding is. A mask says it, or the model's embeddings."""
        given, logits = forward.tensors, forward.logits
        texts = [each for each in given.values() if each.dim() == 2 and not each.is_floating_point()]
        ids, mask = given.get("input_ids", texts[0] if texts else None), given.get("attention_mask")
        if ids is None or logits is None or logits.dim() != 3 or logits.shape[:2] != ids.shape:
            return None
        if has_decoder(forward.model) or (mask is not None and mask.shape != ids.shape):
            return None
        modules = list(forward.model.modules())
        pads = {each.padding_idx for each in modules if isinstance(each, nn.Embedding) and each.padding_idx is not None}
        if mask is not None:
            hidden = mask == 0
            known = (*map(_padding_of, modules), self._tokens.special("pad_token_id"))
            pads |= {each for each in known if each is not None}
        elif len(pads) == 1:
            hidden = trailing(ids, next(iter(pads)))
        else:
            return None
        tokens = torch.unique(ids[hidden])
        at_the_end = not bool((hidden.int().diff(dim=1) < 0).any())
        if len(tokens) != 1 or (int(tokens) not in pads and not at_the_end):
            return None  # hidden places in the middle of a text may be what is to be predicted
        return hidden & torch.cat((hidden[:, 1:], hidden[:, -1:]), 1)

    def _labelled(self, forward: Forward, labels: torch.Tensor, call: LossCall) -> tuple[torch.Tensor, torch.Tensor]:
        """Which labels are padding's and count, and which count."""
        name = "decoder_attention_mask" if has_decoder(forward.model) else "attention_mask"
        mask, pad = forward.tensors.get(name), self._tokens.special("pad_token_id")
        if pad is None and has_decoder(forward.model):
            pad = next((found for found in map(_padding_of, forward.model.modules()) if found is not None), None)
        counted = labels != call.options.get("ignore_index", IGNORED)
        if mask is not None and mask.shape == labels.shape:
            return counted & (mask == 0), counted
        if pad is None or (mask is None and not has_decoder(forward.model)):
            return torch.zeros_like(counted), counted
        return counted & trailing(labels, pad), counted

    def _look_at(self, padded: torch.Tensor, counted: torch.Tensor, call: LossCall | None, where: str | None) -> None:
        if call is not None and (call.reduction == "none" or call.is_weighted):
            return
        several = padded & (padded.sum(1, keepdim=True) >= MIN_IN_ROW)
        self.tell(PaddingCounted(padding=int(several.sum()), counted=int(counted.sum()), where=where))


def _padding(taught: TokenLoss) -> torch.Tensor | None:
    """(rows, tokens): the padding, by the mask or by what the model's embedding calls so; None where neither says."""
    mask = taught.forward.tensors.get("attention_mask")
    if mask is not None and mask.shape == taught.tokens.shape:
        return mask == 0
    classes = None if taught.forward.logits is None else taught.forward.logits.shape[-1]
    embeddings = [each for each in taught.forward.model.modules() if isinstance(each, nn.Embedding)]
    named = {each.padding_idx for each in embeddings if each.num_embeddings == classes}  # others are no words
    return trailing(taught.tokens, padding) if len(named) == 1 and (padding := named.pop()) is not None else None


def _same(call: LossCall, labels: torch.Tensor | None) -> bool:
    """Whether the loss was given these labels, of the tokens of each row."""
    if labels is None or labels.dim() != 2 or labels.is_floating_point() or call.target.numel() != labels.numel():
        return False
    return torch.equal(call.target.flatten(), labels.flatten())


class LeftPadding(Recogniser):
    makes = (LeftPadded,)

    def begin(self) -> None:
        self._asked: WeakSet[nn.Module] = WeakSet()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not event.at.sampled:
            return
        for forward in event.forwards:
            ids, mask = (forward.tensors.get(name) for name in ("input_ids", "attention_mask"))
            if not forward.gradients or forward.model in self._asked or ids is None or mask is None:
                continue
            if ids.dim() != 2 or mask.shape != ids.shape or not generates(forward.model):
                continue
            left = (mask[:, 0] == 0) & (mask != 0).any(1)
            if not left.any():
                continue
            if forward.tensors.get("position_ids") is not None:
                self.tell(LeftPadded(rows=len(left), padded=int(left.sum()), where=forward.where))
            elif _takes_positions(forward.model):
                self._asked.add(forward.model)
                self._ask(forward, mask, left)

    def _ask(self, forward: Forward, mask: torch.Tensor, left: torch.Tensor) -> None:
        of_the_text = (mask.long().cumsum(-1) - 1).clamp(min=0)
        with probing(
            self.monitor, f"whether padding on the left moves the positions of {type(forward.model).__name__}"
        ):
            twin = LanguageTwin(forward)
            others = (
                differ(twin.logits_with(), twin.logits_with(position_ids=of_the_text)) & (mask != 0) & left[:, None]
            )
            rows, padded, differs = len(left), int(left.sum()), bool(others.any())
            self.tell(LeftPadded(rows=rows, padded=padded, differs=differs, where=forward.where))


def _takes_positions(model: nn.Module) -> bool:
    find: Callable[[], nn.Module] | None = getattr(model, "get_base_model", None)  # of PEFT
    return "position_ids" in positional(model if find is None else find())
