"""Stateless: functions of the script's own that keep nothing between two calls, so that the watch may ask them too."""

from __future__ import annotations

import bisect
import builtins
import dis
import functools
import math
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

LIBRARIES = ("torch", "transformers")
"""Their functions of steps keep nothing."""

CHANGES = (
    "STORE_GLOBAL",
    "STORE_NAME",
    "STORE_ATTR",
    "STORE_SUBSCR",
    "STORE_SLICE",
    "STORE_DEREF",
    "DELETE_",
    "IMPORT_",
)
YIELDS = ("YIELD_", "SEND", "BEFORE_", "LOAD_SPECIAL")
"""How the names of instructions begin that change what is not a function's own variable, or may: context managers."""

BUILTINS = (
    "abs all any bool divmod enumerate float int isinstance len list max min pow range round sorted sum tuple zip"
)
MODULES = (math, bisect, np)
ALLOWED = (
    *(getattr(builtins, name) for name in BUILTINS.split()),
    *(each for module in (math, bisect) for each in vars(module).values() if isinstance(each, BuiltinFunctionType)),
    *(each for each in vars(np).values() if isinstance(each, np.ufunc)),
    np.clip,
    np.interp,
)
"""What a function may call besides others that keep nothing, and the modules in which it may look that up."""

CALLED = (FunctionType, BuiltinFunctionType, MethodType, functools.partial, type, np.ufunc, type(np.clip))

UNKNOWN = iter(())


def keeps_nothing(function: Any) -> bool:
    """Whether a function of steps is a library's, or can be seen to keep nothing and to draw nothing.

    It is seen in its instructions: they change nothing but its own variables, and call what is known to do no more.
    """
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    module = inner.__globals__.get("__name__") if isinstance(inner, FunctionType) else None
    return str(module).partition(".")[0] in LIBRARIES or _may_be_called(function, set())


def numbers_in(function: Any) -> set[float]:
    """The finite numbers that a function has: in its code, by the names in it, and in the object that it is of."""
    found: list[Any] = []
    _gather(function, found, set())
    return {each for each in found if type(each) in (int, float) and math.isfinite(each)}


def _gather(value: Any, found: list[Any], seen: set[int]) -> None:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, functools.partial):
        for each in (value.func, *value.args, *value.keywords.values()):
            _gather(each, found, seen)
    elif isinstance(value, FunctionType):
        found += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        for code in _codes(value.__code__):
            found += code.co_consts
            for each in _read(list(dis.get_instructions(code)), _names(value)):
                _gather(each, found, seen)
    elif isinstance(value, MethodType):
        _gather(value.__func__, found, seen)
        found += getattr(value.__self__, "__dict__", {}).values()
    elif isinstance(called := getattr(type(value), "__call__", None), FunctionType):  # noqa: B004
        _gather(called, found, seen)
        found += getattr(value, "__dict__", {}).values()
    else:
        found.append(value)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Code of a function, and of those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _may_be_called(function: Any, judged: set[int]) -> bool:
    if any(function is each for each in ALLOWED) or id(function) in judged:
        return True
    judged.add(id(function))
    if isinstance(function, functools.partial):
        given = (*function.args, *function.keywords.values())
        return _may_be_called(function.func, judged) and all(_may_be_read(each, judged) for each in given)
    if isinstance(function, type):
        return issubclass(function, Exception) and function.__module__ == "builtins"
    own = function if isinstance(function, (FunctionType, MethodType)) else getattr(type(function), "__call__", None)  # noqa: B004
    own = getattr(own, "__func__", own)
    return isinstance(own, FunctionType) and _code_keeps_nothing(own.__code__, _names(own), judged)


def _names(function: FunctionType) -> Mapping[str, Any]:
    """What the names mean that it does not bind itself."""
    names = {**vars(builtins), **function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # nothing yet
            names[name] = UNKNOWN
    return names


def _code_keeps_nothing(code: CodeType, names: Mapping[str, Any], judged: set[int]) -> bool:
    instructions = list(dis.get_instructions(code))
    changes = CHANGES if code.co_name == "<genexpr>" else (*CHANGES, *YIELDS)
    if any(each.opname.startswith(changes) for each in instructions):
        return False
    names = {**names, **dict.fromkeys(code.co_cellvars)}
    within = [each for each in code.co_consts if isinstance(each, CodeType)]
    read = list(_read(instructions, names))
    calls = sum(each.opname in ("CALL", "CALL_KW", "CALL_FUNCTION_EX") for each in instructions)
    return (
        calls <= len(within) + sum(isinstance(each, CALLED) for each in read)  # else it calls what is not seen here
        and all(_may_be_read(each, judged) for each in read)
        and all(_code_keeps_nothing(each, names, judged) for each in within)
    )


def _read(instructions: list[dis.Instruction], names: Mapping[str, Any]) -> Iterator[Any]:
    """The values of the names that code does not bind itself; of a module's, what is looked up in it."""
    module: ModuleType | None = None
    for instruction in instructions:
        value: Any = None
        if module is not None:
            is_found = instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and module in MODULES
            value = vars(module).get(instruction.argval, UNKNOWN) if is_found else UNKNOWN
        elif instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
            value = names.get(instruction.argval, UNKNOWN)
        module = value if isinstance(value, ModuleType) else None
        if value is not None and module is None:
            yield value


def _may_be_read(value: Any, judged: set[int]) -> bool:
    """Whether reading a value, or calling a function, changes nothing: an iterator gives its values only once."""
    if isinstance(value, CALLED):
        return _may_be_called(value, judged)
    return not (hasattr(type(value), "__next__") or hasattr(type(value), "__missing__"))
