"""Attributes that are replaced for a while and put back as they were.

Each way to replace one calls the original as the script would, and guards what is ours: what the instrument raises is
never the script's, and ends that instrument. What an original raises is the script's, once.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch

from harness.watch.events import Event
from harness.watch.guards import Guard, is_the_scripts

ABSENT = object()

Original = Callable[..., Any]
Wrapper = Callable[["Call", tuple[Any, ...], Mapping[str, Any]], Any]
"""What is called in the place of ``original``: ``wrapper(original, args, kwargs)``, a method's object being the first
of ``args``."""


@dataclass(frozen=True)
class Instrument:
    """What looks at the script in one place, and is left out alone where it fails."""

    tells: tuple[type[Event], ...]
    """The events that nobody can rely on where it fails: those that it tells, itself or by way of the monitor."""
    install: Callable[..., None]
    """Called with the session and the patches; with the module, too, where it has one."""
    module: str | None = None
    """The module in which something is replaced, as soon as the script imports it; None for what is there already."""


class Patches:
    """Replaces attributes, also in modules that are imported later; :meth:`undo` puts everything back."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        """``failed`` is told what is raised in a replacement, and not by the original; the script never gets that."""
        self.guard = Guard(failed)
        self._replaced: list[tuple[Any, str, Any]] = []
        self._at_the_end: list[Callable[[], None]] = []
        self._later: dict[str, list[_Patch]] = {}
        self._finder = _Later(self._later)
        sys.meta_path.insert(0, self._finder)

    def guarded_by(self, guard: Guard) -> Patches:
        """The same patches, of which those made from now on by way of it have another guard."""
        found = copy.copy(self)
        found.guard = guard
        return found

    # Ways to replace something

    def wrap(self, owner: Any, name: str, wrapper: Wrapper) -> None:
        """Have ``wrapper`` called in the place of ``owner.name``; what ``owner`` does not have stays absent.

        What takes its place is a function, as what it replaces: models and optimizers that hold it can be copied and
        pickled, and torch.jit finds its source.
        """
        if not hasattr(owner, name):
            return
        own = vars(owner).get(name, ABSENT)
        if isinstance(own, classmethod):
            self._put(owner, name, classmethod(_wrapped(wrapper, own.__func__, self.guard)))
        else:
            self._put(owner, name, _wrapped(wrapper, getattr(owner, name), self.guard))

    def wrap_calls(self, owner: Any, name: str, wrapper: Wrapper, *, where: Callable[[Any], bool]) -> None:
        """Wrap a method of modules for those calls only that ``where(module)`` wants; all others cost little more than
        the original, and what torch.compile goes through sees nothing but that."""
        original, guard = getattr(owner, name), self.guard
        wrapped = _wrapped(wrapper, original, guard)

        @functools.wraps(original)
        def watched(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or guard.off:
                return original(module, *args, **kwargs)
            wanted = False
            try:
                wanted = where(module)
            except Exception as error:  # noqa: BLE001 - one crash policy: the script never pays for it, and it is named
                guard.failed(error)
            return wrapped(module, *args, **kwargs) if wanted else original(module, *args, **kwargs)

        self._put(owner, name, watched)

    def before(self, owner: Any, name: str, look: Callable[[Any], object]) -> None:
        """Have ``look`` called with the object before each call of a method."""
        original, guard = getattr(owner, name), self.guard

        @functools.wraps(original)
        def watched(one: Any, *args: Any, **kwargs: Any) -> Any:
            if not guard.off:
                try:
                    look(one)
                except Exception as error:  # noqa: BLE001 - one crash policy, as above
                    guard.failed(error)
            return original(one, *args, **kwargs)

        self._put(owner, name, watched)

    def after(self, owner: Any, name: str, look: Callable[..., None]) -> None:
        """Have ``look(value, *args, **kwargs)`` called with what each call has given."""
        original, guard = getattr(owner, name), self.guard

        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            value = original(*args, **kwargs)
            if not guard.off:
                try:
                    look(value, *args, **kwargs)
                except Exception as error:  # noqa: BLE001 - one crash policy, as above
                    guard.failed(error)
            return value

        self._put(owner, name, watched)

    def after_operator(self, owner: Any, name: str, look: Callable[[Any, Any, Any], None]) -> None:
        """Have ``look(value, one, other)`` called with what an operator has given: faster than :meth:`after`."""
        original, guard = getattr(owner, name), self.guard

        @functools.wraps(original)
        def operation(one: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
            value = original(one, other, *args, **kwargs) if args or kwargs else original(one, other)
            if not guard.off:
                try:
                    look(value, one, other)
                except Exception as error:  # noqa: BLE001 - one crash policy, as above
                    guard.failed(error)
            return value

        self._put(owner, name, operation)

    def wrap_setter(self, owner: Any, name: str, wrapper: Wrapper) -> None:
        """Have ``wrapper`` called where an attribute that ``owner`` computes is set."""
        computed = getattr(owner, name)
        self._put(owner, name, property(computed.__get__, _wrapped(wrapper, computed.__set__, self.guard)))

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Have something else at ``owner.name``: of what is called too often for a guard, and raises nothing."""
        self._set(owner, name, value)

    def same(self, owner: Any, name: str, of: Any) -> None:
        """Have what was put at ``of.name`` at ``owner.name`` too, which is another name of it."""
        self._set(owner, name, getattr(of, name))

    def _put(self, owner: Any, name: str, value: Any) -> None:
        own = isinstance(value, FunctionType) and getattr(owner, "__module__", None) == "__main__"
        self._set(owner, name, _standing_for(owner, name, value) if own or isinstance(owner, ModuleType) else value)

    def _set(self, owner: Any, name: str, value: Any) -> None:
        self._replaced.append((owner, name, vars(owner).get(name, ABSENT)))
        setattr(owner, name, value)

    # When

    def when_imported(self, module: str, patch: Callable[[ModuleType], None]) -> None:
        """Call ``patch`` with a module: now if it is there, or as soon as it has been imported."""
        waiting = _Patch(self.guard, patch)
        if module in sys.modules:
            waiting(sys.modules[module])
        else:
            self._later.setdefault(module, []).append(waiting)

    def at_the_end(self, undo: Callable[[], None]) -> None:
        """Have this called too when everything is put back."""
        self._at_the_end.append(undo)

    def undo(self) -> None:
        while self._at_the_end:
            with self.guard:
                self._at_the_end.pop()()
        self._later.clear()
        if self._finder in sys.meta_path:  # the script may have taken it out
            sys.meta_path.remove(self._finder)
        while self._replaced:
            owner, name, own = self._replaced.pop()
            if own is ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, own)


def calling_frame() -> FrameType:
    """The frame that called what is replaced, for what is called in its place."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame


class _Held:
    """What a function calls in the place of an original; pickled with that function, it is the original."""

    __slots__ = ("called", "original")

    def __init__(self, original: Original, called: Original) -> None:
        self.original, self.called = original, called

    def __reduce__(self) -> tuple[type[_Held], tuple[Original, Original]]:
        return _Held, (self.original, self.original)


def _standing_for(owner: Any, name: str, replacement: Original) -> Original:
    """A function for the place of one of a module, or of a class of the script, which is taken for it where it matters.

    dill, by which datasets tells one function from another, goes through all that a script's function names, what is
    named in that, and what it closes over: here it comes to the names in the code of the original. The script's classes
    it pickles with their functions. And pickle finds a module's function, whatever else it is called.
    """
    original = getattr(owner, name)
    held, own = _Held(original, replacement), getattr(original, "__code__", None)

    def watched(*args: Any, **kwargs: Any) -> Any:
        """Call what is watched."""
        return held.called(*args, **kwargs)

    code = watched.__code__
    if own is not None:
        code = code.replace(co_consts=(*code.co_consts, own))
    found = FunctionType(code, getattr(original, "__globals__", vars(owner)), name, None, watched.__closure__)
    functools.update_wrapper(found, original)
    if isinstance(owner, ModuleType):
        found.__module__, found.__qualname__ = owner.__name__, name
    return found


def _wrapped(wrapper: Wrapper, original: Original, guard: Guard) -> Original:
    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        """Call what is watched."""  # Evaluate copies the code of its methods, and adds to the docstring in it
        if guard.off:
            return original(*args, **kwargs)
        call = Call(original)
        try:
            return wrapper(call, args, kwargs)
        except Exception as error:
            if error is call.error or is_the_scripts(error):
                raise
            ours = error
        return call.goes_on(guard, ours, args, kwargs)

    return watched


class Call:
    """The call of an original by its wrapper, and what came of it."""

    __slots__ = ("__name__", "_original", "_read", "error", "result", "returned")

    def __init__(self, original: Original) -> None:
        self._original = original
        self._read: tuple[Any, Any] | None = None
        self.__name__ = getattr(original, "__name__", "")
        self.error: Exception | None = None
        """What the script's own code has raised."""
        self.result: Any = None
        self.returned = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            self.result = self._original(*args, **kwargs)
        except Exception as error:
            self.error = error
            raise
        self.returned = True
        return self.result

    def reads(self, values: Iterable[Any]) -> list[Any]:
        """What the script's iterator gives, which can be read once: the original is to be given the list.

        What it raises is the script's.
        """
        try:
            found = list(values)
        except Exception as error:
            self.error = error
            raise
        self._read = values, found
        return found

    def goes_on(self, guard: Guard, ours: Exception, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The wrapper has failed: do for the script what is left to do, once.

        Where the original then raises too, the call is wrong by itself, and was no failure of the instrument's.
        """
        if self.error is None and not self.returned:
            self.result = self._original(*map(self._as_read, args), **{k: self._as_read(v) for k, v in kwargs.items()})
        guard.failed(ours)
        if self.error is not None:
            raise self.error
        return self.result

    def _as_read(self, given: Any) -> Any:
        return self._read[1] if self._read is not None and given is self._read[0] else given


class _Patch:
    """What waits for a module to be imported."""

    def __init__(self, guard: Guard, patch: Callable[[ModuleType], None]) -> None:
        self.guard, self._patch = guard, patch

    def __call__(self, module: ModuleType) -> None:
        with self.guard:  # a version that has not what is wrapped can still be imported
            self._patch(module)


class _Later(MetaPathFinder):
    """Finds what the other finders find, and patches it when it has been executed."""

    def __init__(self, later: dict[str, list[_Patch]]) -> None:
        self._later = later
        self._looking: set[str] = set()
        """The modules that the other finders are being asked for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        patches = self._later.get(fullname)
        if patches is None or fullname in self._looking:
            return None
        self._looking.add(fullname)
        try:
            return self._patched(find_spec(fullname), fullname)
        except Exception as error:  # noqa: BLE001 - Python goes on to the next finder, which raises what is the script's
            for each in patches:
                each.guard.failed(error)
        finally:
            self._looking.discard(fullname)
        return None

    def _patched(self, spec: ModuleSpec | None, name: str) -> ModuleSpec | None:
        """A spec whose module is patched when it is executed: libraries also ask only whether a module is there."""
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_patch(module: ModuleType) -> None:
            execute(module)
            for patch in self._later.pop(name, ()):
                patch(module)

        spec.loader.exec_module = execute_and_patch  # type: ignore[method-assign]
        return spec
