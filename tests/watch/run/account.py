"""The entities of a loop's account, as whoever reads it is told them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch

from harness.watch.bus import Listener, Told
from harness.watch.events import Event
from harness.watch.instrument import instrumented
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options
from harness.watch.session import Session

Entity = TypeVar("Entity", bound=Event)


def told(kind: type[Entity], loop: Callable[[], object]) -> list[Entity]:
    """The entities of this kind, in the order in which they closed."""
    found: list[Entity] = []

    class Reader(Listener):
        def subscriptions(self) -> Iterator[Told]:
            yield kind, found.append

    watched(loop, lambda _: Reader())
    return found


def watched(loop: Callable[[], object], *readers: Callable[[Monitor], Any]) -> None:
    """A loop, watched by these alone."""
    torch.manual_seed(0)
    session = Session(Options(sections=readers), Locator())
    with instrumented(session):
        loop()
    session.ends()
    assert session.crashed == {}
