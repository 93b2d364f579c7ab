"""Run the blocks of one document, one after the other, in one namespace; each result is a line of JSON.

Runs in a process of its own, whose working directory holds what the documents load by name. The documents' notebook
shows the value of a block's last expression, and so does this.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import io
import json
import os
import re
import signal
import sys
import traceback
import unittest
import warnings
from collections.abc import Sequence
from types import CodeType
from typing import Any

LOGGED = io.StringIO()
"""The process's stderr: handlers of the libraries' loggers keep the one that they find when they are made."""

DEPRECATED = re.compile(r"deprecat|will be removed|is no longer", re.IGNORECASE)


def main() -> None:
    # What is read and written past Python is no task and no result.
    tasks, results = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.argv, sys.stderr = ["notebook"], LOGGED
    sys.path.insert(0, "")  # as in a notebook
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only a block is interrupted
    namespace: dict[str, Any] = sys.modules["__main__"].__dict__
    for line in tasks:
        task = json.loads(line)
        results.write(json.dumps(executed(task["code"], task["name"], namespace, task["decorators"])) + "\n")
        results.flush()


def executed(code: str, name: str, namespace: dict[str, Any], decorators: Sequence[str] = ()) -> dict[str, Any]:
    """What a block did: the error, deprecation warnings, what it printed or showed, and why a decorator skipped it."""
    printed, error, shown, skipped = io.StringIO(), None, [None], None
    LOGGED.seek(0)
    LOGGED.truncate()

    def block() -> None:
        body, last = _compiled(code, name)
        exec(body, namespace)  # noqa: S102  that is what it is for
        if last is not None:
            shown[0] = eval(last, namespace)  # noqa: S307

    with contextlib.redirect_stdout(printed), _warnings() as seen:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for each in reversed(decorators):
                block = _decorator(each)(block)
            block()
        except BaseException as raised:  # noqa: BLE001 - it is what is asked for
            if decorators and (isinstance(raised, unittest.SkipTest) or type(raised).__name__ == "Skipped"):
                skipped = str(raised) or "no reason given"
            else:
                error = _format_error(raised, name)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    warned = [str(each.message) for each in seen if _is_shown(each, name)]
    warned += [line for line in LOGGED.getvalue().splitlines() if DEPRECATED.search(line) and "Warning:" not in line]
    return {
        "error": error,
        "skipped": skipped,
        "warnings": list(
            dict.fromkeys(_without_paths(each.strip().splitlines()[0]) for each in warned if each.strip())
        ),
        "printed": printed.getvalue() + ("" if shown[0] is None else repr(shown[0])),
    }


def _decorator(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _compiled(code: str, name: str) -> tuple[CodeType, CodeType | None]:
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    shown = compile(ast.Expression(last.value), name, "eval") if isinstance(last, ast.Expr) else None
    return compile(tree, name, "exec"), shown


@contextlib.contextmanager
def _warnings() -> Any:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen


def _is_shown(warning: warnings.WarningMessage, name: str) -> bool:
    """Whether a reader sees it, as a deprecation: Python shows those of a reader's own lines and FutureWarnings."""
    if issubclass(warning.category, FutureWarning):
        return True
    if issubclass(warning.category, (DeprecationWarning, PendingDeprecationWarning)):
        return warning.filename == name
    return bool(DEPRECATED.search(str(warning.message)))


def _format_error(error: BaseException, name: str) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    own = bool(frames) and frames[-1].filename == name
    missing = error.name if isinstance(error, NameError) and own else None
    says = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return {"type": type(error).__name__, "says": _without_paths(says), "name": missing, "module": _absent(error)}


def _absent(error: BaseException) -> str | None:
    """The library that an import does not find, where the whole of it is missing."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    package = error.name.partition(".")[0]
    return package if package not in sys.modules and importlib.util.find_spec(package) is None else None


def _without_paths(text: str) -> str:
    """Where a library lies on one machine says nothing to another."""
    return re.sub(r"\s*\(/[^\s()]*\)|(?<![\w.:/])(/[\w.+-]+){2,}/?", "", text).strip()[:300]


if __name__ == "__main__":
    main()
