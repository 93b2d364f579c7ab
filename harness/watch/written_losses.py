"""Losses that a script writes itself, read back from the graph of what it differentiates.

The nodes of a graph keep what their gradients need, and so what a loss is made of: the logarithms of probabilities, the
targets that picked some of them, the differences that were squared. torch names the nodes after its operations
(``LogSoftmaxBackward0._saved_result``, ``GatherBackward0._saved_index``); that holds for torch 2.6 to 2.13. Custom
functions, compiled and checkpointed parts keep nothing that can be read: there, and where what was saved was written
to since, no loss is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from harness.watch.events import IGNORED, Forward

MOST_NODES = 64
"""Nodes between what is differentiated and a loss: by reasoning, a few operations for each of a few terms."""

RESHAPES = ("View", "UnsafeView", "Reshape", "Squeeze", "Unsqueeze", "ToCopy", "Alias", "Clone")
"""What changes the shape or the type of a tensor, and no number and no order."""

LINEAR = (*RESHAPES, "Neg", "Mean", "Sum", "Add", "Div", "Mul")
"""What stands between losses of rows and what is differentiated; a product or quotient only by constants."""


class Written(NamedTuple):
    """A loss that was found in a graph, as the function of torch.nn.functional that would have computed it."""

    function: str
    input: torch.Tensor
    """(rows, classes), or as the targets."""
    target: torch.Tensor


class _Unreadable(Exception):
    """Raised where a graph tells no loss."""


def written_losses(root: torch.Tensor, forwards: Sequence[Forward]) -> list[Written]:
    """The losses that are differentiated at ``root``; none where one of its terms cannot be read.

    Asked before the backward pass, which frees the graph.
    """
    try:
        return list(_losses(root.grad_fn, forwards))
    except (_Unreadable, RuntimeError):  # torch raises that where what a node had saved was written to, or freed
        return []


def _losses(root: Any, forwards: Sequence[Forward]) -> Iterator[Written]:
    waiting: list[tuple[Any, torch.Tensor | None]] = [(root, None)] if root is not None else []
    for _ in range(MOST_NODES):
        if not waiting:
            return
        node, counted = waiting.pop()
        name = _name(node)
        found = _of_classes(node, counted) or _of_differences(node, forwards)
        if found is not None:
            yield _as_the_model_said(found, forwards)
            continue
        if not name.startswith(LINEAR):
            raise _Unreadable
        if name.startswith(("Mul", "Div")):
            counted = _both(counted, _weights(node))
        before = [each for each, _ in node.next_functions if each is not None]
        if not before or (len(before) > 1 and not name.startswith("Add")):
            raise _Unreadable
        waiting += [(each, counted) for each in before]
    raise _Unreadable


def _name(node: Any) -> str:
    return "" if node is None else type(node).__name__


def _weights(node: Any) -> torch.Tensor | None:
    """Which losses of rows a product or quotient by a constant leaves; None where it leaves all."""
    constants = [each for each in (_saved(node, "other"), _saved(node, "self")) if each is not None]
    for constant in constants:
        if constant.numel() > 1 and not constant.requires_grad:
            if not bool(((constant == 0) | (constant == 1)).all()) or _name(node).startswith("Div"):
                raise _Unreadable  # each row has a weight of its own
            return constant.detach()
    return None


def _both(one: torch.Tensor | None, other: torch.Tensor | None) -> torch.Tensor | None:
    if one is not None and other is not None:
        raise _Unreadable
    return other if one is None else one


def _saved(node: Any, what: str) -> torch.Tensor | None:
    found = getattr(node, f"_saved_{what}", None)
    return found if torch.is_tensor(found) else None


def _only(node: Any) -> Any:
    """The node before it, where there is one."""
    before = [each for each, _ in node.next_functions if each is not None]
    if len(before) != 1:
        raise _Unreadable
    return before[0]


def _of_classes(node: Any, counted: torch.Tensor | None) -> Written | None:
    """Loss from logarithms of probabilities, of which targets pick one in each row, or which they weigh.

    They are torch's log_softmax, the logarithm of its softmax, or logits less the logarithm of their exponentials' sum.
    """
    target: torch.Tensor | None = None
    picked: int | None = None
    """The dimension along which targets pick, of so many."""
    places = 0
    by_logarithm = reshaped = False
    while True:
        name = _name(node)
        if name.startswith("LogSoftmax") or (name.startswith("Softmax") and by_logarithm):
            result = _saved(node, "result")
            if target is None or result is None:
                return None
            result, dim = result.detach(), _signed(node._saved_dim)
            logarithms = result if name.startswith("Log") else result.log()
            if picked is not None and picked % places != dim % result.dim() - result.dim() + places:
                # of another dimension's softmax
                return None if reshaped else _of_probabilities(logarithms.exp(), picked, target, counted)
            twice = _softmax_before(node)
            if twice is not None and twice.shape == result.shape:
                return _of_probabilities(twice, dim, target, counted)
            return _by_row(logarithms, dim, target, counted)
        if name.startswith(("Gather", "Index")) and target is None:
            target = _picked(node)
            of_gather = name.startswith("Gather")
            picked, places = (_signed(node._saved_dim), node._saved_index.dim()) if of_gather else (-1, 2)
        elif name.startswith("Mul") and target is None and _name(_only_or_none(node)).startswith("Log"):
            weights = [each for each in (_saved(node, "other"), _saved(node, "self")) if each is not None]
            target = next((each.detach() for each in weights if _is_soft(each)), None)
        elif name.startswith("LogBackward") and not by_logarithm:
            by_logarithm = True
        elif name.startswith("Sub"):
            return _of_exponentials(node, target, counted)
        elif not (by_logarithm and name.startswith(("Add", "Clamp"))) and not (
            target is not None and name.startswith(RESHAPES)
        ):
            return None
        if target is None and not by_logarithm:
            return None
        reshaped = reshaped or name.startswith(RESHAPES)
        node = _only_or_none(node)


def _only_or_none(node: Any) -> Any:
    before = [each for each, _ in node.next_functions if each is not None]
    return before[0] if len(before) == 1 else None


def _is_soft(values: torch.Tensor) -> bool:
    """Whether they may be the shares of the classes in each row."""
    return not values.requires_grad and values.dim() > 1 and bool((values >= 0).all())


def _picked(node: Any) -> torch.Tensor | None:
    """The class that was picked in each row; None where something else was."""
    if _name(node).startswith("Gather"):
        index, dim = node._saved_index, _signed(node._saved_dim)
        return index.squeeze(dim) if index.dim() > 1 and index.shape[dim] == 1 else None
    indices = list(node._saved_indices)
    if len(indices) != 2 or any(each is None or each.dtype is not torch.int64 or each.dim() != 1 for each in indices):
        return None
    rows, target = indices
    return target if torch.equal(rows.cpu(), torch.arange(len(target), device="cpu")) else None


def _of_exponentials(node: Any, target: torch.Tensor | None, counted: torch.Tensor | None) -> Written | None:
    """Loss ``logits.logsumexp(dim) - logits[rows, targets]``, or the same with what was picked of the logits.

    The latter is what torch.distributions.Categorical does.
    """
    before = [each for each, _ in node.next_functions]
    if len(before) != 2:
        return None
    total = next((each for each in before if _name(each).startswith("Logsumexp")), None)
    if target is None and total is before[0]:
        picked = before[1]
        while _name(picked).startswith(RESHAPES):
            picked = _only(picked)
        target = _picked(picked) if _name(picked).startswith(("Gather", "Index")) else None
    logits = _saved(total, "self")
    dims: tuple[int, ...] = getattr(total, "_saved_dim", ())
    if logits is None or target is None or len(dims) != 1:
        return None
    return _by_row(logits.detach().log_softmax(_signed(dims[0])), dims[0], target, counted)


def _softmax_before(node: Any) -> torch.Tensor | None:
    """The probabilities of which a softmax is taken again."""
    before = _only_or_none(node)
    while _name(before).startswith(RESHAPES):
        before = _only_or_none(before)
    found = _saved(before, "result") if _name(before).startswith("Softmax") else None
    return None if found is None else found.detach()


def _of_probabilities(
    values: torch.Tensor, dim: int, target: torch.Tensor, counted: torch.Tensor | None
) -> Written | None:
    """Loss of each row from probabilities, where a cross entropy takes logits."""
    found = _by_row(values, dim, target, counted)
    return None if found is None else Written("cross_entropy", found.input, found.target)


def _signed(dim: int) -> int:
    """A dimension, which torch keeps as a number without a sign."""
    return dim - 2**64 if dim >= 2**63 else dim


def _by_row(logarithms: torch.Tensor, dim: int, target: torch.Tensor, counted: torch.Tensor | None) -> Written | None:
    """Arguments as nll_loss takes them: one row of logarithms and one target for each place."""
    logarithms = logarithms.movedim(_signed(dim), -1)
    logarithms = logarithms.reshape(-1, logarithms.shape[-1])
    if target.is_floating_point() or target.numel() == logarithms.numel():
        if target.numel() != logarithms.numel():
            return None
        target = target.movedim(_signed(dim), -1).reshape(logarithms.shape)
        if not bool(((target == 0) | (target == 1)).all()) or not bool((target.sum(1) == 1).all()):
            return None
        target = target.argmax(1)
    target = target.detach().reshape(-1)
    if len(target) != len(logarithms):
        return None
    if counted is not None:
        if counted.numel() != len(target):
            return None
        target = torch.where(counted.reshape(-1).bool(), target, IGNORED)
    return Written("nll_loss", logarithms, target)


def _of_differences(node: Any, forwards: Sequence[Forward]) -> Written | None:
    """Loss from the squares or absolute values of the differences between a model's output and targets."""
    name, function = _name(node), "mse_loss"
    if name.startswith("Abs"):
        function = "l1_loss"
    elif not (name.startswith("Pow") and getattr(node, "_saved_exponent", None) == 2) and not _is_square(node):
        return None
    difference = _saved(node, "self")
    before = node.next_functions[0][0]
    while _name(before).startswith(RESHAPES):
        before = _only(before)
    if difference is None or not _name(before).startswith("Sub"):
        return None
    one, other = (each for each, _ in before.next_functions)
    if (one is None) == (other is None):
        return None  # both have a gradient: neither is a target
    prediction = _said(other if one is None else one, difference, forwards)
    if prediction is None:
        return None
    difference = difference.detach()
    return Written(
        function, prediction, prediction.detach() + difference if one is None else prediction.detach() - difference
    )


def _is_square(node: Any) -> bool:
    before = [each for each, _ in node.next_functions]
    return _name(node).startswith("Mul") and len(before) == 2 and before[0] is before[1] is not None


def _said(node: Any, difference: torch.Tensor, forwards: Sequence[Forward]) -> torch.Tensor | None:
    """What a model said, of the shape of the difference, if it is its output but for the shape."""
    for _ in range(MOST_NODES):
        for forward in forwards:
            logits = forward.logits
            if logits is not None and logits.grad_fn is node and logits.numel() == difference.numel():
                return logits.detach().reshape(difference.shape)
        if not _name(node).startswith((*RESHAPES, "Select")):  # of the one column that there is
            return None
        node = _only(node)
    return None


def _as_the_model_said(found: Written, forwards: Sequence[Forward]) -> Written:
    """Loss in terms of a model's logits, where the probabilities are those of all that it said."""
    for forward in forwards if found.function == "nll_loss" else ():
        logits = forward.logits
        if logits is not None and logits.numel() == found.input.numel() and logits.shape[-1] == found.input.shape[1]:
            rows = logits.detach().reshape(found.input.shape)
            if torch.allclose(functional.log_softmax(rows.to(found.input.dtype), 1), found.input, atol=1e-5):
                return Written("cross_entropy", rows, found.target)
    return found
