"""Recognisers: make facts of events, and of one another's facts.

One is told of an event, keeps what it must, and tells a fact that checks judge::

    class Ends(Recogniser):
        makes = (RunOver,)

        def on_end(self, event: End) -> None:
            self.tell(RunOver(updates=event.at.updates_made))
"""

from __future__ import annotations

from typing import Any, ClassVar

from harness.watch.bus import RECOGNISERS, KnownListener, Listener, Summarised
from harness.watch.events import Fact
from harness.watch.monitor import Monitor


class Observer(Listener):
    """A listener that keeps what it saw: a recogniser, or a check that looks for itself.

    What it keeps from one event to the next is its own; it is bounded, and lets tensors go.
    """

    monitor: Monitor

    def begin(self) -> None:
        """Make what it keeps from one event to the next."""

    def fact(self, kind: type[KnownListener]) -> KnownListener:
        """A recogniser, of which it needs more than its facts."""
        return self.monitor.bus.recogniser(kind)


class Recogniser(Observer, Summarised):
    """Makes facts from events, or from other recognisers' facts, and tells them by ``self.tell(fact)``.

    It is made where somebody needs one of its facts (``makes``), and is told of an event before those that need it.

    Raises:
        TypeError: when a subclass is made that makes a fact that another makes.
    """

    makes: ClassVar[tuple[type[Fact], ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for fact in vars(cls).get("makes", ()):
            other = RECOGNISERS.setdefault(fact, cls)
            if other.__qualname__ != cls.__qualname__:
                raise TypeError(f"{cls.__qualname__} makes {fact.__qualname__}, which {other.__qualname__} makes")
            RECOGNISERS[fact] = cls

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor
        self.begin()

    def tell(self, fact: Fact) -> None:
        self.monitor.emit(fact)

    def wants(self, kind: type[Fact]) -> bool:
        """Whether anybody needs such facts: what is dear to make, or leaves a note, is made only then."""
        return self.monitor.bus.wants(kind)
