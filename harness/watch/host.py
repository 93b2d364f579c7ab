"""Copies on the host of what lies on a device: what is looked at comes in one transfer, for which a script waits once.

A listener that reads a number of a tensor makes the script wait for its device. So it takes ``on_host(tensor)`` and
looks at that. The first to ask for one brings along what the others are about to ask for: what the models were last
given and said, and what losses were computed from (:meth:`Monitor.at_hand`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from weakref import WeakMethod, ref

import torch
from torch import nn

from harness.torch_objects import is_dense, version

MOST_ELEMENTS = 1_000_000
"""Elements of a tensor that is brought to the host; a larger one is looked at where it lies. By reasoning, what costs
less than the step itself."""


class _Copies(threading.local):
    def __init__(self) -> None:
        self.at_hand: WeakMethod[Callable[[], Iterator[torch.Tensor]]] | None = None
        self.known: dict[int, tuple[ref[torch.Tensor], int, torch.Tensor]] = {}
        """Tensor id to the tensor, its version when it was copied, and the copy."""

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        known = self.known.get(id(tensor))
        return known[2] if known is not None and known[0]() is tensor and known[1] == version(tensor) else None


_COPIES = _Copies()


def at_hand(tensors: WeakMethod[Callable[[], Iterator[torch.Tensor]]]) -> None:
    """From now on these are brought along with whatever is asked for in this thread, while there is whose they are."""
    _COPIES.at_hand = tensors


def forget() -> None:
    """Let the copies of this thread go."""
    _COPIES.known.clear()


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor without its graph, on the host: the same memory where it lies there. A large one stays where it is."""
    if not _is_brought(tensor):
        return tensor.detach()
    copy = _COPIES.of(tensor)
    if copy is not None:
        return copy
    beside = None if _COPIES.at_hand is None else _COPIES.at_hand()
    bring([tensor, *(other for other in (() if beside is None else beside()) if other.device == tensor.device)])
    return _COPIES.known[id(tensor)][2]


def bring(tensors: Iterable[torch.Tensor]) -> None:
    """Have :func:`on_host` give these from now on without a further transfer."""
    wanted = {id(each): each for each in tensors if _is_brought(each) and _COPIES.of(each) is None}
    for each, copy in zip(wanted.values(), brought(list(wanted.values())), strict=True):
        _COPIES.known[id(each)] = ref(each), version(each), copy


def together(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Tensors as :func:`on_host` gives them, or where they are, so that all lie on one device."""
    copies = [on_host(each) for each in tensors]
    return copies if len({each.device for each in copies}) == 1 else [each.detach() for each in tensors]


def brought(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies of tensors on the host, without their graphs, in one transfer from each device where that can be."""
    with torch.no_grad():
        found = {id(each): each.detach().clone() for each in tensors if each.device.type == "cpu"}
        devices = {each.device for each in tensors if each.device.type != "cpu"}
        for device in devices:
            mine = [each for each in tensors if each.device == device]
            copies: list[torch.Tensor] | None = None
            if len(mine) > 1 and all(map(_is_plain, mine)):
                with suppress(RuntimeError, NotImplementedError):  # of a kind whose bits cannot be seen
                    copies = _together(mine)
            copies = copies or [each.detach().cpu() for each in mine]
            found |= {id(each): its for each, its in zip(mine, copies, strict=True)}
    return [found[id(each)] for each in tensors]


def _together(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    order = sorted(range(len(tensors)), key=lambda at: -tensors[at].element_size())  # so that each begins where it may
    flat = [tensors[at].detach().contiguous().reshape(-1) for at in order]
    whole = torch.cat([each.view(torch.uint8) for each in flat]).cpu()
    copies: dict[int, torch.Tensor] = {}
    begins = 0
    for at, tensor in zip(order, flat, strict=True):
        ends = begins + tensor.numel() * tensor.element_size()
        copies[at] = whole[begins:ends].view(tensor.dtype).reshape(tensors[at].shape)
        begins = ends
    return [copies[at] for at in range(len(tensors))]


def _is_brought(tensor: torch.Tensor) -> bool:
    return tensor.device.type != "cpu" and tensor.numel() <= MOST_ELEMENTS and _is_plain(tensor)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether its numbers are its memory's: no subclass that computes them, and no tensor without any."""
    plain = type(tensor) in (torch.Tensor, nn.Parameter) and is_dense(tensor)
    return plain and not (tensor.is_meta or tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
