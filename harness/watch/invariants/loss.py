"""Loss: what is differentiated is the loss of the raw logits and the labels of the batch."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import torch

from harness.watch.events_old import Backward, Batch, Forward, Loss
from harness.watch.invariants.gradients import NEAR, mean_loss
from harness.watch.invariants.rows import labels_of, tensors_in
from harness.watch.observer import Invariant, Observer, Statement

TWICE, SAME = 2, 5
"""So many updates in a row with other labels, or one loss, are no accident."""


SMOOTH = 0.9
"""Label smoothing from which on the labels hardly count."""


class Losses(Invariant):
    checks = (
        Statement("loss::of-raw-logits", "The loss is computed from raw logits, as its function expects them."),
        Statement("loss::of-the-batch", "The loss is that of the batch at hand, with that batch's labels."),
        Statement("loss::shapes-agree", "Predictions and targets have one shape, so that each meets its own."),
        Statement("loss::varies", "The loss depends on what the model says of the rows."),
        Statement("loss::finite", "The loss is a finite number."),
        Statement("update::descends", "The optimizer makes the loss smaller, not larger."),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.probabilities: dict[str, int] = {}
        self.same = 0
        self.varied = False
        self.value: float | None = None
        self.recent: deque[tuple[torch.Tensor, torch.Tensor | None]] = deque(maxlen=4)
        """The latest batches: their largest tensor, by which a forward is known to be of it, and their labels."""
        self.wrong_labels = self.partly = 0
        self.batch_of: dict[int, int] = {}
        """Of the latest forwards, which batch each was of."""
        self.differentiated: set[int] = set()
        self.seen_batch: int | None = None
        self.matched: set[int] = set()

    def loss(self, event: Loss) -> None:
        if not self.observer.is_sampled():
            return
        if event.input.is_floating_point():
            self._raw(event)
        if event.function not in ("cross_entropy", "nll_loss") and event.input.shape != event.target.shape:
            self.found(
                "loss::shapes-agree",
                expected=f"a target of the prediction's shape, {tuple(event.input.shape)}",
                observed=f"one of shape {tuple(event.target.shape)}, which {event.function} broadcasts: each row is "
                "compared with every target",
                hint="Give both the same shape (squeeze(-1) or unsqueeze(-1)).",
                where=event.where,
                update=self.observer.update,
            )
        smoothing = event.options.get("label_smoothing", 0.0)
        if event.function == "cross_entropy" and smoothing >= SMOOTH:
            self._constant(f"label_smoothing={smoothing} gives all classes the same target", event.where)
        if event.function == "cross_entropy" and event.input.dim() == 2 and event.input.shape[1] == 1:
            self._constant("the cross-entropy has one class only, so it is 0 whatever the model says", event.where)

    def _raw(self, event: Loss) -> None:
        values = event.input.detach().float()
        probable = values.dim() == 2 and values.shape[-1] > 1 and bool((values >= 0).all())
        kind = None
        if event.function == "cross_entropy" and event.input.dim() == 2 and probable:
            if torch.allclose(values.sum(1), torch.ones(len(values), device=values.device), atol=1e-2):
                kind = "probabilities (its rows sum to 1); it takes the softmax itself"
            elif len(values) > 1 and torch.allclose(values.sum(0), torch.ones_like(values[0]), atol=1e-3):
                kind = "a softmax over the batch (its columns sum to 1)"
        elif event.function == "nll_loss" and event.input.dim() == 2:
            if not torch.allclose(values.logsumexp(1), torch.zeros(len(values), device=values.device), atol=1e-2):
                kind = "no log-probabilities (their exponentials do not sum to 1), which it needs"
        elif event.function == "binary_cross_entropy_with_logits" and _is_sigmoid(event.input):
            kind = "probabilities; it takes the sigmoid itself"
        if kind is None:
            self.probabilities[event.function] = 0
            return
        self.probabilities[event.function] = self.probabilities.get(event.function, 0) + values.numel()
        if self.probabilities[event.function] >= 8:
            self.found(
                "loss::of-raw-logits",
                expected="log-probabilities" if event.function == "nll_loss" else "raw logits",
                observed=f"{event.function} is given {kind}",
                hint="Give it log_softmax(logits), or use cross_entropy."
                if event.function == "nll_loss"
                else "Take the softmax or sigmoid out.",
                where=event.where,
                update=self.observer.update,
            )

    def trainer(self, event: tuple[Any, str | None]) -> None:
        smoothing = event[0].args.label_smoothing_factor
        if smoothing >= SMOOTH:
            self._constant(f"label_smoothing_factor={smoothing} gives all classes the same target", event[1])

    def _constant(self, observed: str, where: str | None) -> None:
        self.found(
            "loss::varies",
            expected="a loss that depends on the logits and the labels",
            observed=observed,
            hint="Look at the loss function, its options and the number of labels.",
            where=where,
            update=self.observer.update,
        )

    def batch(self, event: Batch) -> None:
        if not self.observer.is_sampled():
            self.recent.clear()
            return
        given = max((tensor for _, tensor in tensors_in(event.data)), key=lambda tensor: tensor.numel(), default=None)
        labels = labels_of(event.data)
        if given is not None:
            self.recent.append((given, None if labels is None else torch.tensor(labels)))

    def forward(self, event: Forward) -> None:
        if event.gradients and event.batch is not None:
            self.batch_of[event.number] = event.batch.number
            for old in [number for number in self.batch_of if number < event.number - 64]:
                del self.batch_of[old]
                self.differentiated.discard(old)

    def backward_begins(self, event: Backward) -> None:
        if not self.observer.is_sampled() or event.inside_step:
            return
        value = event.root.detach().float().sum().item() / event.scale
        if not math.isfinite(value):
            if event.scale == 1.0:
                self.found(
                    "loss::finite",
                    expected="a finite loss",
                    observed=f"the loss is {value}",
                    hint="Look at the labels (all ignored?), the learning rate, divisions by 0 and logarithms of 0; "
                    "torch.autograd.set_detect_anomaly(True) names the operation.",
                    where=event.where,
                    update=self.observer.update,
                )
            return
        self._negated(value, event)
        batch = event.batch.number if event.batch else None
        if batch != self.seen_batch:
            self.varied = self.varied or self.value not in (None, value)
            self.same += 1
            self.value, self.seen_batch = value, batch
            if not self.varied and self.same >= SAME and event.batch is not None and (event.batch.of.planned or 2) > 1:
                self._constant(f"it has been exactly {value:.6g} for {SAME} batches", event.where)
        self._labels_of_batch(event)

    def _negated(self, value: float, event: Backward) -> None:
        means = [mean for call in event.losses if (mean := mean_loss(call)) is not None]
        if not means and value < 0:
            means = self._by_hand(event)
        if len(means) != 1 or means[0] <= 0 or value >= 0:
            return
        parts = -means[0] / value
        if abs(parts - round(parts)) < NEAR * parts and 1 <= round(parts) <= 64:
            self.found(
                "update::descends",
                expected="the loss itself to be differentiated",
                observed="its negative is, so each update makes the loss larger",
                hint="Take out the minus.",
                where=event.where,
                update=self.observer.update,
            )

    def _by_hand(self, event: Backward) -> list[float]:
        """The cross-entropy of the logits and the batch's labels, where no function of torch computed a loss."""
        labels, _ = self._own_labels(event)
        logits = event.forwards[-1].logits if event.forwards else None
        if labels is None or logits is None or logits.dim() != 2 or len(labels) != len(logits):
            return []
        if int(labels.min()) < 0 or int(labels.max()) >= logits.shape[1]:
            return []
        return [float(torch.nn.functional.cross_entropy(logits.detach().float().cpu(), labels))]

    def _labels_of_batch(self, event: Backward) -> None:
        calls = [call for call in event.losses if call.function in ("cross_entropy", "nll_loss")]
        calls = [call for call in calls if call.value is event.root or torch.equal(call.value, event.root)] or calls
        targets = [call.target.detach().cpu() for call in calls if call.target.dim() == 1]
        if not targets or any(t.is_floating_point() for t in targets):
            return
        current, others = self._own_labels(event)
        if current is not None and all(_is_part(t, current) for t in targets):
            self.partly += 1
            if self.partly >= TWICE:
                self.found(
                    "loss::of-the-batch",
                    expected=f"the loss of all {len(current)} rows of a batch",
                    observed=f"that of {max(len(t) for t in targets)} of them",
                    hint="Give the loss function all logits and labels of the batch.",
                    where=calls[-1].where,
                    update=self.observer.update,
                )
            return
        if current is None or any(_equal(t, current) for t in targets):
            self.wrong_labels = 0
            return
        permuted = all(_equal(t.sort()[0], current.sort()[0]) for t in targets)
        previous = any(_equal(t, older) for t in targets for older in others)
        self.wrong_labels = self.wrong_labels + 1 if permuted or previous else 0
        if self.wrong_labels >= TWICE:
            what = "the batch's labels in another order" if permuted else "the labels of another batch"
            self.found(
                "loss::of-the-batch",
                expected="the loss of the logits and labels of one batch",
                observed=f"the loss function is given {what}",
                hint="Pass the labels on as they come with the batch.",
                where=calls[-1].where,
                update=self.observer.update,
            )

    def _own_labels(self, event: Backward) -> tuple[torch.Tensor | None, list[torch.Tensor]]:
        """The labels of the batch that the model was given, and those of other batches of late."""
        if not event.forwards:
            return None, []
        tensors = [t.cpu() for t in event.forwards[-1].tensors.values()]
        own, others = None, []
        for given, labels in self.recent:
            if labels is not None:
                if any(_equal(t, given.cpu()) for t in tensors):
                    own = labels
                else:
                    others.append(labels)
        return own, others

    def backward(self, event: Backward) -> None:
        """A loss may reach back to forwards before the latest backward pass only if those were kept on purpose."""
        if event.batch is None or not event.reached or event.inside_step:
            return
        again = {
            n
            for n in event.reached & self.differentiated
            if self.batch_of.get(n, event.batch.number) != event.batch.number
        }
        self.differentiated |= event.reached
        if again and self.observer.is_sampled():
            self.found(
                "loss::of-the-batch",
                expected="the loss of the batch at hand, differentiated once",
                observed=f"{len(again)} forward passes of batches before are differentiated again",
                hint="Call backward() on each batch's loss alone, without retain_graph; gradients add up anyway.",
                where=event.where,
                update=self.observer.update,
            )
        numbers = {forward.number for forward in event.forwards if forward.gradients}
        if numbers and not numbers & event.reached and max(event.reached) < min(numbers):
            self.found(
                "loss::of-the-batch",
                expected="the loss of the batch at hand",
                observed="the loss that is differentiated comes from an earlier batch's forward pass",
                hint="Call backward() on the loss of the forward just made.",
                where=event.where,
                update=self.observer.update,
            )


def _is_part(labels: torch.Tensor, of: torch.Tensor) -> bool:
    """Whether labels are those of the first or the last rows only."""
    size = len(labels)
    return 0 < size < len(of) and (torch.equal(labels, of[:size]) or torch.equal(labels, of[-size:]))


def _is_sigmoid(tensor: torch.Tensor) -> bool:
    """Whether a sigmoid made it, with no more than a reshape in between."""
    node = tensor.grad_fn
    while node is not None and node.name().startswith(("View", "Reshape", "Squeeze", "Unsqueeze", "ToCopy", "Select")):
        node = node.next_functions[0][0]
    return node is not None and node.name().startswith("Sigmoid")


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)
