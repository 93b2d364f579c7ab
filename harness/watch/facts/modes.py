"""Modes: which modules of a model behave otherwise in train mode, and in which mode a pass was evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from harness.watch.bus import Recogniser
from harness.watch.events import Fact, Forward, Pass, PassEnds


@dataclass(frozen=True)
class FirstForward:
    """The first forward of a pass."""

    training: bool
    active: int
    """Modules that behave otherwise in train mode, and are."""
    gradients: bool
    where: str | None
    norms: bool = False
    """Whether some of them are batch normalisations, which take what they are given into their statistics."""
    averages: bool = False
    """Whether these take the mean of all batches, as they do while torch.optim.swa_utils.update_bn renews them."""


class PassEvaluated(Fact):
    """A pass over a DataLoader is over in which a model was called and nothing was trained.

    ``where`` is the first call.
    """

    needs = "evaluation over a DataLoader"
    of_run = True
    of: Pass
    first: FirstForward

    @property
    def repeated(self) -> bool:
        """Whether the model was called more than once for a batch."""
        return self.of.forwards > self.of.batches


class Modes(Recogniser):
    """The modes of the models that are called."""

    makes = (PassEvaluated,)

    def begin(self) -> None:
        self._first: WeakKeyDictionary[Pass, FirstForward] = WeakKeyDictionary()
        self._sensitive: WeakKeyDictionary[nn.Module, list[nn.Module]] = WeakKeyDictionary()
        self._trained_on: WeakSet[Any] = WeakSet()
        """Loaders of whose batches a model was trained."""

    def sensitive(self, model: nn.Module) -> list[nn.Module]:
        """The modules that behave otherwise in train mode."""
        found = self._sensitive.get(model)
        if found is None:
            found = self._sensitive[model] = [module for module in model.modules() if _is_sensitive(module)]
        return found

    def on_forward(self, event: Forward) -> None:
        if event.batch is not None and event.batch.of not in self._first:
            active = [module for module in self.sensitive(event.model) if module.training]
            momenta = [module.momentum for module in active if isinstance(module, _BatchNorm)]
            self._first[event.batch.of] = FirstForward(
                event.model.training,
                len(active),
                event.gradients,
                event.where,
                norms=bool(momenta),
                averages=bool(momenta) and all(each is None for each in momenta),
            )

    def on_pass_ends(self, event: PassEnds) -> None:
        ended, first = event.of, self._first.get(event.of)
        if ended.trains:
            self._trained_on.add(ended.loader)
            return
        looks_at_one = ended.batches < 2 and ended.planned != 1
        if first is not None and not looks_at_one and ended.loader not in self._trained_on:
            self.tell(PassEvaluated(of=ended, first=first, where=first.where))


def _is_sensitive(module: nn.Module) -> bool:
    return (
        (isinstance(module, _DropoutNd) and module.p > 0)
        or isinstance(module, _BatchNorm)
        or (isinstance(module, nn.RNNBase) and module.dropout > 0 and module.num_layers > 1)
    )
