"""Options: what argparse was told to take, and which of it the script reads."""

from __future__ import annotations

import argparse
import linecache
import os
import re
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import ref

from harness.watch.bounded import MOST
from harness.watch.events import Option, OptionsParsed, Reading
from harness.watch.instrument.patches import Instrument, Original, Patches, calling_frame
from harness.watch.session import Session

SHOWS = re.compile(
    r"print|log|wandb|mlflow|tracker|json|yaml|dump|save|write|pprint|tensorboard|hparams|report", re.IGNORECASE
)
"""What a line has that shows or keeps all options, and reads none of them."""

OURS = (argparse.__file__, f"{Path(__file__).parents[2]}{os.sep}")
"""Files whose reading is none of the script's."""


UNREAD = (argparse.SUPPRESS, "help", "local_rank")
"""Attributes that nothing has to read: torch's former launcher gives --local_rank to every script, which must take
it."""


class _Options:
    """What is known of the options of parsers, and of the namespaces that they have filled."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._made: dict[int, str | None] = {}
        """The id of what a parser takes to where that was added."""
        self._parsed: dict[int, tuple[ref[argparse.Namespace], Reading]] = {}
        self._depth = threading.local()

    def added(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        action = original(*args, **kwargs)
        monitor = self._session.current()
        if monitor is not None and monitor.locator.is_users(calling_frame()):  # else it is a library's, which reads it
            self._made[id(action)] = monitor.locator.where()
        return action

    def parsed(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        outer, self._depth.inner = getattr(self._depth, "inner", False), True
        try:
            found = original(*args, **kwargs)
        finally:
            self._depth.inner = outer
        monitor = self._session.current()
        if not outer and monitor is not None and type(found) is tuple and type(found[0]) is argparse.Namespace:
            known = [
                Option(action.dest, max(action.option_strings, key=len), self._made[id(action)])
                for action in args[0]._actions
                if id(action) in self._made and action.option_strings and action.dest not in UNREAD
            ]
            event = OptionsParsed(tuple(known), monitor.locator.where(), Reading())
            if len(self._parsed) < MOST:
                self._parsed[id(found[0])] = ref(found[0]), event.reading
            monitor.emit(event)
        return found

    def read(self, namespace: argparse.Namespace, name: str) -> None:
        """An attribute was asked for: argparse's own code does so too, to fill a namespace or to show it."""
        known = self._parsed.get(id(namespace))
        if known is None or known[0]() is not namespace:
            return
        caller = sys._getframe(1).f_back
        if caller is None or caller.f_code.co_filename.startswith(OURS):
            return
        if name == "__dict__":
            line = linecache.getline(caller.f_code.co_filename, caller.f_lineno)
            known[1].whole |= SHOWS.search(line) is None
        elif name.startswith("__"):
            known[1].whole |= name.startswith("__reduce")  # copied, or pickled
        else:
            known[1].names.add(name)


def install(session: Session, patches: Patches) -> None:
    options = _Options(session)
    patches.wrap(argparse._ActionsContainer, "add_argument", options.added)
    patches.wrap(argparse.ArgumentParser, "parse_known_args", options.parsed)
    given, read = object.__getattribute__, options.read

    def __getattribute__(self: argparse.Namespace, name: str) -> Any:  # noqa: N807 - as the original is called
        read(self, name)
        return given(self, name)

    patches.replace(argparse.Namespace, "__getattribute__", __getattribute__)


INSTRUMENTS = (Instrument((OptionsParsed,), install),)
