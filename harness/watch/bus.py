"""The bus: tells listeners what happens, each after the recognisers that it needs; one that raises is left out.

What comes in are kinds of listeners and events; what goes out are calls of the listeners' handlers::

    bus = Bus(monitor)
    bus.add(NotCleared)       # makes the recogniser of the fact that it judges, and then the check
    bus.tell(event, at)       # the recogniser hears the event, tells its fact, and the check judges that
    bus.wants(Drawn)          # False: nobody is told of permutations, so no instrument looks for them
    bus.crashed               # {"gradients::not-cleared": "the check itself crashed: …"}, if one has raised
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from types import FunctionType, UnionType
from typing import Any, ClassVar, Protocol, TypeVar, get_args

from harness.findings import shortened
from harness.torch_objects import in_modes, out_of_modes
from harness.watch.events import Event, Position, resting_on
from harness.watch.guards import Guard, is_the_scripts

KnownListener = TypeVar("KnownListener", bound="Listener")

Told = tuple[type[Event], Callable[[Any], None]]
"""A kind of event or fact, and what is called with it."""


def kinds_told(function: FunctionType) -> tuple[type[Event], ...]:
    """The events or facts that a handler takes: those with which its first parameter after ``self`` is annotated.

    Raises:
        TypeError: the annotation names something that its module does not know when the class is made.
    """
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    annotation = function.__annotations__.get(names[0]) if names else None
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, function.__globals__)  # noqa: S307 - an annotation of our own
        except NameError as error:
            raise TypeError(f"{function.__qualname__}: {error}; import it outside TYPE_CHECKING") from None
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    return tuple(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Event))


class Listener:
    """What events and facts are told to: recognisers, checks, recorders.

    A method whose name begins with ``on_`` is told of what its first parameter is annotated with: ``def on_step(self,
    event: Step)``, ``def on_used(self, fact: GradientsUsed)``, or of several: ``Forward | InnerForward``.

    Raises:
        TypeError: when a subclass is made with such a method whose parameter names no event and no fact.
    """

    takes: ClassVar[tuple[str, ...]] = ("on_",)
    """How the names of methods begin that are told of something."""
    told_of: ClassVar[dict[str, tuple[type[Event], ...]]] = {}
    """Method name to the events and facts it is told of."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.told_of = dict(cls.told_of)
        for name, method in vars(cls).items():
            if name.startswith(cls.takes) and isinstance(method, FunctionType):
                cls.told_of[name] = kinds_told(method)
                if not cls.told_of[name]:
                    raise TypeError(
                        f"{cls.__qualname__}.{name} is told of nothing: annotate its first parameter with an event "
                        f"(harness/watch/events.py) or a fact (harness/watch/facts)"
                    )

    def subscriptions(self) -> Iterator[Told]:
        """What it is told of, with what is called then."""
        for name, kinds in self.told_of.items():
            for kind in kinds:
                yield kind, getattr(self, name)


class OutcomeListener(Listener):
    """A listener with an outcome: a check, or a recorder, which judges nothing."""

    id: ClassVar[str]
    looked = True
    """Whether there was something to look at."""
    looked_at = ""
    """What that was, where it is said."""

    def lacks(self) -> str:
        """Why there was nothing to look at."""
        return ""


class Summarised(Listener):
    """A listener that is compared with those of other ranks: a recogniser."""

    def summary(self) -> Any:
        """What this rank knows at the end of the run, as JSON, to be compared with the others'; None for nothing."""
        return None

    def compare(self, summaries: Sequence[Any]) -> None:
        """Tell facts of the ranks' summaries, this one's first, on the first of several ranks when all are over."""


RECOGNISERS: dict[type[Event], type[Summarised]] = {}
"""Kind of fact to the recogniser that makes it."""


class Host(Protocol):
    """What a bus belongs to, and what its listeners are made with: a monitor."""

    @property
    def update(self) -> int: ...


class Suspended(threading.local):
    """Entered for each event: a context manager by contextlib takes more calls than most listeners make."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


class Bus:
    """The listeners of one loop, and what became of them."""

    def __init__(self, monitor: Host) -> None:
        self._monitor = monitor
        self.suspended = Suspended()
        """What happens within it in this thread is not the script's doing, and nobody is told."""
        self.crashed: dict[str, str] = {}
        """Ids of listeners that failed themselves or need one that did, each with how."""
        self._told: dict[type[Event], list[tuple[Listener, Callable[[Any], None]]]] = {}
        self._recognisers: dict[type[Listener], Listener] = {}
        self._needs: dict[Listener, list[Listener]] = {}
        """Which recognisers a listener needs."""
        self._making: list[list[Listener]] = []
        self._left_out: set[object] = set()
        self._lost: dict[type[Event], str] = {}
        """Kinds that are told no more, because what tells them has failed, and how."""
        self._less: dict[type[Event], str] = {}
        """Kinds that say less than they did, and those that are told no more; each with how."""

    def add(self, kind: Callable[[Any], KnownListener]) -> KnownListener:
        """Make a listener, and before it the recognisers of what it is told of: so it is told after them."""
        self._making.append([])
        listener = kind(self._monitor)
        told = list(listener.subscriptions())
        for event, _ in told:
            if event in RECOGNISERS:
                self.recogniser(RECOGNISERS[event])
        self._needs[listener] = self._making.pop()
        for event, handle in told:
            self._told.setdefault(event, []).append((listener, handle))
        for why in [self._lost[event] for event, _ in told if event in self._lost][:1]:
            self._leave_out({listener}, why)
        return listener

    def recogniser(self, kind: type[KnownListener]) -> KnownListener:
        """The recogniser of this class: the same one for all, made when the first needs it."""
        if kind not in self._recognisers:
            self._recognisers[kind] = made = self.add(kind)
            known = set(self._recognisers.values())
            for event in {event for event, _ in made.subscriptions()}:
                # Recognisers first; the sort keeps the order of their making.
                self._told[event].sort(key=lambda pair: pair[0] not in known)
        recogniser = self._recognisers[kind]
        if self._making:
            self._making[-1].append(recogniser)
        assert isinstance(recogniser, kind)
        return recogniser

    def recognisers(self) -> list[Summarised]:
        """Recognisers that are made and have not failed."""
        return [
            each for each in self._recognisers.values() if isinstance(each, Summarised) and each not in self._left_out
        ]

    def wants(self, kind: type[Event]) -> bool:
        """Whether anybody is told of such events."""
        return bool(self._told.get(kind))

    def tell(self, event: Event, at: Position) -> None:
        """Tell the listeners; one that raises is left out, unless it was the script's own signal handler that did."""
        object.__setattr__(event, "at", at)  # nobody else writes it
        if in_modes():
            with self.suspended, out_of_modes():
                self._tell(event)
            return
        with self.suspended:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        left_out = self._left_out
        for listener, handle in self._told[type(event)]:
            if left_out and listener in left_out:
                continue  # since this very event
            try:
                handle(event)
            except Exception as error:
                if is_the_scripts(error):
                    raise
                self.leave_out(listener, error)

    def has_left_out(self, listener: Listener) -> bool:
        """Whether it has failed, or what it needs has."""
        return listener in self._left_out

    def guarded(self, listener: Listener, handle: Callable[..., None]) -> Callable[..., Any]:
        """A hook that a listener puts on something of the script's: what it raises is not the script's.

        What happens within it is not the script's doing either.
        """

        def handled(*told: Any) -> None:
            with self.suspended:
                if listener not in self._left_out:
                    handle(*told)

        return Guard(lambda error: self.leave_out(listener, error)).guarded(handled)

    def leave_out(self, failed: Listener, error: Exception) -> None:
        """A check that fails itself leaves out only itself; a recogniser that does, those that need it.

        Raises:
            Exception: the error, where it is the script's, or is to be seen.
        """
        if is_the_scripts(error):
            raise error
        self._leave_out({failed}, f"the check itself crashed: {raised_line(error, self._monitor.update)}")

    def lose(self, kinds: Collection[type[Event]], why: str) -> set[type[Event]]:
        """What tells these events has failed: who is told of them, or of what rests on them, is left out.

        All kinds that are lost with them.
        """
        lost = resting_on(kinds)
        self._lost = dict.fromkeys(lost, why) | self._lost
        self._less = dict.fromkeys(resting_on(kinds, in_part=True), why) | self._less
        self._leave_out({listener for kind in lost for listener, _ in self._told.get(kind, ())}, why)
        return lost

    def misses(self, listener: Listener) -> str | None:
        """How something has failed without which a listener, which has looked at nothing, may have had nothing to look
        at; None where nothing has."""
        needed, told = [listener], set[type[Event]]()
        for dependency in needed:
            needed += [other for other in self._needs.get(dependency, ()) if other not in needed]
            told.update(kind for kind, _ in dependency.subscriptions())
        return next((why for kind, why in self._less.items() if kind in told), None)

    def _leave_out(self, failed: Collection[Listener], why: str) -> None:
        gone: set[object] = set(failed)
        left = -1
        while len(gone) > left:
            left = len(gone)
            gone |= {each for each, needed in self._needs.items() if gone.intersection(needed)}
        self._left_out |= gone
        for kind, listeners in self._told.items():
            self._told[kind] = [each for each in listeners if each[0] not in gone]
        for recogniser in self._needs:
            if recogniser in gone and (name := getattr(recogniser, "id", None)):
                self.crashed.setdefault(name, why)


def raised_line(error: Exception, update: int) -> str:
    """What an error says, in one line, and where it was raised; of one that cannot say anything, its class."""
    words, place = "", ""
    with suppress(Exception):  # its class may be the script's
        words = f": {shortened(next(iter(str(error).splitlines()), ''))}"
    for last in traceback.extract_tb(error.__traceback__)[-1:]:
        place = f"{os.path.basename(last.filename)}:{last.lineno}, "
    return f"{type(error).__name__}{words} ({place}update {update})"
