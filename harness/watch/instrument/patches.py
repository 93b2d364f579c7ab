"""Attributes that are replaced for a while and put back as they were."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

ABSENT = object()

Original = Callable[..., Any]
Wrapper = Callable[[Original, tuple[Any, ...], Mapping[str, Any]], Any]
"""What is called in the place of ``original``: ``wrapper(original, args, kwargs)``, a method's object being the first
of ``args``."""


class Patches:
    """Replaces attributes, also in modules that are imported later; :meth:`undo` puts everything back."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        """``failed`` is told what a wrapper raises that the original did not; the script never gets that."""
        self._failed = failed
        self._replaced: list[tuple[Any, str, Any]] = []
        self._at_the_end: list[Callable[[], None]] = []
        self._later: dict[str, Callable[[ModuleType], None]] = {}
        self._finder = _Later(self._later)
        sys.meta_path.insert(0, self._finder)

    def wrap(self, owner: Any, name: str, wrapper: Wrapper) -> None:
        """Have ``wrapper`` called in the place of ``owner.name``; what ``owner`` does not have stays absent.

        What takes its place is a function, as what it replaces: models and optimizers that hold it can be copied and
        pickled, and torch.jit finds its source.
        """
        if not hasattr(owner, name):
            return
        own = vars(owner).get(name, ABSENT)
        if isinstance(own, classmethod):
            self.put(owner, name, classmethod(self._calling(wrapper, own.__func__)))
        else:
            self.put(owner, name, self._calling(wrapper, getattr(owner, name)))

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Have ``value`` in the place of ``owner.name``."""
        self._replaced.append((owner, name, vars(owner).get(name, ABSENT)))
        setattr(owner, name, value)

    def when_imported(self, module: str, patch: Callable[[ModuleType], None]) -> None:
        """Call ``patch`` with a module: now if it is there, or as soon as it has been imported."""

        def guarded(found: ModuleType) -> None:
            try:
                patch(found)
            except Exception as error:  # noqa: BLE001 - a version that has not what is wrapped can still be imported
                self._failed(error)

        if module in sys.modules:
            guarded(sys.modules[module])
        else:
            before = self._later.get(module)
            self._later[module] = guarded if before is None else _both(before, guarded)

    def at_the_end(self, undo: Callable[[], None]) -> None:
        """Have this called too when everything is put back."""
        self._at_the_end.append(undo)

    def undo(self) -> None:
        while self._at_the_end:
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

    def _calling(self, wrapper: Wrapper, original: Original) -> Original:
        failed = self._failed

        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            """Call what is watched."""  # Evaluate copies the code of its methods, and adds to the docstring in it
            call = _Call(original)
            try:
                return wrapper(call, args, kwargs)
            except Exception as error:
                if error is call.error:
                    raise
                failed(error)
            return call.result if call.returned else original(*args, **kwargs)

        return watched


class _Call:
    """The call of an original by its wrapper, and what came of it."""

    __slots__ = ("__name__", "_original", "error", "result", "returned")

    def __init__(self, original: Original) -> None:
        self._original = original
        self.__name__ = getattr(original, "__name__", "")
        self.error: Exception | None = None
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


class _Later(MetaPathFinder):
    """Finds what the other finders find, and patches it when it has been executed."""

    def __init__(self, later: dict[str, Callable[[ModuleType], None]]) -> None:
        self._later = later

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        patch = self._later.pop(fullname, None)
        if patch is None:
            return None
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_patch(module: ModuleType) -> None:
                execute(module)
                patch(module)

            spec.loader.exec_module = execute_and_patch  # type: ignore[method-assign]
        return spec


def _both(one: Callable[[ModuleType], None], other: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    def patch(module: ModuleType) -> None:
        one(module)
        other(module)

    return patch
