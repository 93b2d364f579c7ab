"""Whose line is it: which of the lines that are being executed is the user's own."""

from __future__ import annotations

import ast
import linecache
import os
import re
import signal
import sys
import sysconfig
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from harness.files import texts_below
from harness.findings import CELLS, interactive_shell

OUR_CELL = re.compile(r"In\[\d+\]")
"""What the code of a notebook's cell is compiled under where the harness runs it."""

LIBRARIES = ("torch", "transformers", "accelerate", "datasets", "evaluate", "tqdm", "click")
"""Not the user's, wherever they are installed: an editable checkout is not below site-packages."""


class _Computed(dict[str, str]):
    """What a function gives for each key, asked once: to look one up costs no call of a Python function."""

    def __init__(self, of: Callable[[str], str]) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, key: str) -> str:
        self[key] = found = self._of(key)
        return found


class Locator:
    """Finds the user's own lines on the stack of the thread that asks.

    ``script`` is the user's, wherever it lies.
    """

    def __init__(self, script: Path | None = None) -> None:
        self.script = None if script is None else os.path.realpath(script)
        self._folder = os.getcwd()
        self._shown = _Computed(self._as_shown)
        """How a file is shown, by its name; empty for those that are not the user's."""
        self._folders = _Computed(os.path.realpath)
        self._places: dict[tuple[str, int], str] = {}
        """How a line is shown."""
        paths = {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        paths.add(str(Path(__file__).parents[1]))
        self._not_the_users = {os.path.realpath(path) + os.sep for path in paths}
        self._not_imported = set(LIBRARIES)
        """Libraries whose folders are not known yet, because they are not imported."""

    @property
    def script_place(self) -> str | None:
        """The script's first line, for what is at no line in particular."""
        return None if self.script is None else f"{self._relative(self.script)}:1"

    def where(self) -> str | None:
        """FILE:LINE of the innermost line that is the user's own."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not self._shown[frame.f_code.co_filename]:
            frame = frame.f_back
        if frame is None:
            return None
        place = frame.f_code.co_filename, frame.f_lineno
        if place not in self._places:
            self._places[place] = self.shown(place)
        return self._places[place]

    def stack(self, frame: FrameType | None = None) -> tuple[tuple[str, int], ...]:
        """All of the user's own lines that are being executed, the innermost first; of another thread by its frame."""
        return tuple(self._lines(frame or sys._getframe()))

    def shown(self, place: tuple[str, int]) -> str:
        """A line of :meth:`stack` as FILE:LINE, or as Jupyter says it, Cell In[2], line 5."""
        name, line = place
        if OUR_CELL.fullmatch(name):
            return f"Cell {name}, line {line}"
        return f"{cell}, line {line}" if (cell := _cell(name)) else f"{self._shown[name]}:{line}"

    def _lines(self, frame: FrameType | None) -> Iterator[tuple[str, int]]:
        while frame is not None:
            if self._shown[name := frame.f_code.co_filename]:
                yield name, frame.f_lineno
            frame = frame.f_back

    def is_users(self, frame: FrameType) -> bool:
        """Whether the code of a frame is the user's own."""
        return bool(self._shown[frame.f_code.co_filename])

    def is_users_file(self, name: str) -> bool:
        """Whether the file of that name, as its code has it, is the user's own."""
        return bool(self._shown[name])

    def variables(self, most: int) -> Iterator[dict[str, Any]]:
        """The variables of the user's functions that are being executed, of the innermost ones first."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and most:
            if self.is_users(frame):
                yield dict(frame.f_locals)
                most -= 1
            frame = frame.f_back

    def users_files(self) -> set[str]:
        """The files of all modules that are loaded and the user's own, as they are shown."""
        files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        return {self._relative(file) for file in files if isinstance(file, str) and self._is_users(file)}

    def argument(self, name: str) -> str | None:
        """FILE:LINE where the user's files give an argument of that name; None where none does, or several do."""
        return self._only(_lines_with_argument, name)

    def read_names(self, names: Collection[str]) -> set[str]:
        """Those of some names that a line of the user's files reads, as an attribute or a word in quotes; also one of a
        file that this run does not import, as that of another model."""
        files = self.users_files() | ({self._relative(self.script)} if self.script is not None else set())
        texts = ["".join(linecache.getlines(file)) for file in files if not file.endswith(".ipynb")]
        texts += ["\n".join(cell) for cell in CELLS.values()]
        found = {name for name in names if any(reads(text, name) for text in texts)}
        left, others = set(names) - found, texts_below(Path(self._folder)) if len(found) < len(names) else []
        return found | {name for name in left if any(reads(text, name) for _, text in others)}

    def assignment(self, attribute: str) -> str | None:
        """FILE:LINE where the user's files give an attribute of that name another value, other than in a class's own
        ``self``; None where none does, or several do."""
        return self._only(_lines_with_assignment, attribute)

    def _only(self, lines: Callable[[list[ast.AST], str], list[int]], name: str) -> str | None:
        """The only line of the user's files, or cells, that a function of their code and a name gives."""
        found = [f"{file}{line}" for file, nodes in self.code(name) for line in lines(nodes, name)]
        return found[0] if len(found) == 1 else None

    def code(self, name: str = "") -> Iterator[tuple[str, list[ast.AST]]]:
        """What the user's files, or cells, that have a name consist of, each by what stands before a line's number."""
        files = self.users_files() | ({self._relative(self.script)} if self.script is not None else set())
        texts = {file: linecache.getlines(file) for file in sorted(files) if not file.endswith(".ipynb")}
        for file, text in texts.items():
            yield f"{file}:", _parsed("".join(text), name)
        for number, cell in CELLS.items():
            yield f"Cell In[{number}], line ", _parsed("\n".join(cell), name)

    def _as_shown(self, name: str) -> str:
        return self._relative(name) if self._is_users(name) else ""

    def _relative(self, name: str) -> str:
        """Relative to the working directory where it lies below it, and the script has not gone to another."""
        try:
            relative = name if os.getcwd() != self._folder else os.path.relpath(name)
        except FileNotFoundError:  # it has been removed
            relative = name
        return name if relative.startswith("..") else relative

    def _is_users(self, name: str) -> bool:
        if OUR_CELL.fullmatch(name) or "ipykernel" in name or name.startswith("<ipython"):
            return True
        if name.startswith("<"):
            return False
        path = self._real(name)
        return path == self.script or not path.startswith(self._others())

    def _real(self, name: str) -> str:
        """A file's path without links; thousands of files share some hundred folders, which are looked up once."""
        if not os.path.isabs(name):
            return os.path.realpath(name)
        folder, base = os.path.split(name)
        path = os.path.join(self._folders[folder], base)
        return os.path.realpath(path) if os.path.islink(path) else path

    def _others(self) -> tuple[str, ...]:
        for library in self._not_imported.copy():
            module = sys.modules.get(library)  # it may have been imported since
            # A script may have a file of that name beside it (evaluate.py, datasets.py), whose folder is the user's.
            if module is not None and module.__file__ and hasattr(module, "__path__"):
                self._not_the_users.add(os.path.realpath(os.path.dirname(module.__file__)) + os.sep)
                self._not_imported.discard(library)
        return tuple(self._not_the_users)


def reads(text: str, name: str) -> bool:
    """Whether Python code reads something of a name, as an attribute or a word in quotes."""
    if not re.search(rf"\b{re.escape(name)}\b", text):
        return False
    for node in _parsed(text, name):
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Constant) and node.value == name:  # getattr(args, "name"), a list of names
            return True
    return False


def _parsed(text: str, name: str) -> list[ast.AST]:
    """What code consists of; nothing of one that does not have the name: to parse a large project takes seconds."""
    if name not in text:
        return []
    try:
        return list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        return []


def _lines_with_assignment(tree: list[ast.AST], attribute: str) -> list[int]:
    assigned = (node for node in tree if isinstance(node, ast.Assign))
    targets = (target for node in assigned for target in node.targets if isinstance(target, ast.Attribute))
    return [
        each.lineno
        for each in targets
        if each.attr == attribute and not (isinstance(each.value, ast.Name) and each.value.id == "self")
    ]


def _lines_with_argument(tree: list[ast.AST], name: str) -> list[int]:
    named = [node for node in tree if isinstance(node, ast.keyword) and node.arg == name]
    keys = (key for node in tree if isinstance(node, ast.Dict) for key in node.keys)
    return [node.value.lineno for node in named] + [
        key.lineno for key in keys if isinstance(key, ast.Constant) and key.value == name
    ]


def _cell(name: str) -> str | None:
    """What Jupyter and IPython call the cell whose code is kept under a file's name: "Cell In[2]"."""
    shell = interactive_shell()
    label = shell and getattr(shell.compile, "format_code_name", lambda _: None)(name)
    return " ".join(label) if label else None


def from_signal_handler(error: BaseException) -> bool:
    """Whether a signal handler of the script's own raised it: it is meant for the script, wherever it came up.

    Python runs handlers between any two instructions of the main thread, those of a check included.
    """
    handlers = {_code(signal.getsignal(each)) for each in signal.valid_signals()} - {None}
    trace = error.__traceback__
    while handlers and trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _code(handler: Any) -> CodeType | None:
    """The code that runs when a handler is called: of a function, a method, a partial or an object with __call__."""
    while isinstance(handler, partial):
        handler = handler.func
    if not callable(handler):
        return None
    for function in (handler, getattr(type(handler), "__call__", None)):  # noqa: B004, its code is wanted
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None
