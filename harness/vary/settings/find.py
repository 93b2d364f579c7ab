"""Finding of settings: literals in the user's files that have a name, and are in force."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from harness.findings import shortened
from harness.vary.settings.purpose import purpose

Kind = Literal["option", "constant", "argument", "default", "entry", "in a file"]

NOT_SETTINGS = re.compile(
    r"dim|dims|axis|axes|keepdims?|start_dim|end_dim|size|shape|out|dtype|device|map_location|weights_only|"
    r"index|end|sep|flush|file|mode|encoding|errors|newline|indent|help|prog|description|dest|type|nargs|action|"
    r"choices|metavar|required|exist_ok|parents|color|label|title|figsize|level|format|timeout|strict|"
    r"return_tensors|non_blocking|set_to_none|inplace|kw_only|frozen|maxsplit|default_factory|init|repr|"
    r".*_?(dir|path|folder|file|url|name|project|entity|token|version|desc|prefix|suffix|tag|tags|api_key)"
)
"""Names of arguments of which no value is another training: axes, shapes, paths, and what argparse and print take."""

COUNTERS = (0, 0.0, -1, 1, None, False, True)
"""Values that a name may begin with that is counted up, or replaced, later."""

PLACES: dict[str, tuple[str | None, ...]] = {
    "Dropout": ("p",),
    "clip_grad_norm_": (None, "max_norm"),
    "clip_grad_value_": (None, "clip_value"),
    "manual_seed": ("seed",),
    "manual_seed_all": ("seed",),
    "seed": ("seed",),
    "set_seed": ("seed",),
    "StepLR": (None, "step_size", "gamma"),
    "ExponentialLR": (None, "gamma"),
    "CosineAnnealingLR": (None, "T_max", "eta_min"),
    "DataLoader": (None, "batch_size", "shuffle"),
    "range": (),
}
"""Names of the arguments that calls of libraries take by their place."""

COMMAND_LINE = "command line"
"""In the place of the file of an option that no file of the user's declares; its line is the number of the word."""

ARGPARSE = "argparse"
"""What an option belongs to that is read as an attribute, and not as a parameter."""

SETTERS = {"add_argument", "option"}

GIVEN_TO: list[Kind] = ["option", "constant", "entry", "default"]
"""Kinds of settings to which the command line may give another value, the likeliest first."""

WIDTH = 60
"""Characters of a value that are shown."""

PARSED = re.compile(r"^--?(?P<name>[A-Za-z][\w-]*)")


@dataclass(frozen=True)
class Setting:
    """A value in force, and where it is written."""

    name: str
    kind: Kind
    of: str
    """What it is passed to, or belongs to: a call, a function, a class, a file."""
    file: str
    line: int
    value: Any
    start: int = 0
    end: int = 0
    """Where the literal lies in the file, in bytes."""
    argument: int | None = None
    """Place among the arguments of the command line, of an option that is given there."""
    choices: tuple[Any, ...] = ()
    given_at: str | None = None
    """Where some call gives a function another value than this default."""
    lines: tuple[int, int] = (0, 0)
    """The lines that are executed where it is used: the statement, or the body of the function whose default it is."""
    is_parameter: bool = False
    """Whether calls may give another value: it is the default of a function's parameter, or of a dataclass's field."""
    flag: str = ""
    """Option that the command line may be given for it, as ``--amp``: it stores whether it is there."""

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def own_name(self) -> str:
        """Its name without those of the tables that it is in: lr of optim.lr."""
        return self.name.rpartition(".")[2]

    @property
    def shown(self) -> str:
        """As a table names it."""
        called = f"{self.of}({self.name})" if self.of else self.name
        name = {"option": f"--{self.name}", "argument": called}.get(self.kind, self.name)
        return f"{name} = {shortened(repr(self.value), WIDTH)}" if self.value is not None or not self.flag else name

    def is_within(self, line: int) -> bool:
        """Whether a line of its file is one of those that are executed where it is used."""
        return self.lines[0] <= line <= self.lines[1]


@dataclass
class Found:
    """The settings of the user's files."""

    settings: list[Setting] = field(default_factory=list)
    overridden: list[tuple[Setting, str]] = field(default_factory=list)
    """Values that are not in force, with where another one is given."""
    not_read: list[str] = field(default_factory=list)
    """What was not looked at, and why."""


def settings_of(
    files: Mapping[str, bytes], arguments: Sequence[str] = (), is_executed: Callable[[str], bool] = lambda place: True
) -> Found:
    """The settings in Python files, by their names and contents, of a script that is given some arguments.

    Only a line that is executed, as ``FILE:LINE``, gives another value.
    """
    found, modules = Found(), list[_Module]()
    for file, data in files.items():
        try:
            modules.append(_Module(file, data))
        except (SyntaxError, ValueError) as error:
            found.not_read.append(f"{file}: {error}")
    calls = [call for module in modules for call in module.calls if is_executed(call.place)]
    pairs = [pair for module in modules for pair in module.attributes if is_executed(pair[1])]
    assigned = dict(reversed(pairs))  # the first of a name
    every = [setting for module in modules for setting in module.settings()]
    of_kinds = [setting for kind in GIVEN_TO for setting in every if setting.kind == kind]
    options = {setting.name: setting for setting in reversed(of_kinds)}
    for setting in every:
        declared = options.get(setting.name, setting)
        # Where a parser takes the option, a constant of its name is something else.
        is_another = declared.kind == "option" and setting.kind in ("constant", "entry")
        given = setting if is_another else _given(setting, arguments)
        if given.argument is not None and declared is not setting:
            found.overridden.append((setting, "the command line"))
            continue
        overridden, given_at = _overridden(setting, calls)
        # args.lr = … is another value of an option and of a field; of a function's default it is something else's.
        if setting.kind == "option" or (setting.kind == "default" and "#" not in setting.of):
            overridden = overridden or assigned.get(setting.name)
        if given is not setting:
            found.settings.append(given)
        elif overridden is not None:
            found.overridden.append((setting, overridden))
        else:
            found.settings.append(replace(setting, given_at=given_at))
    found.settings += _of_libraries(arguments, {setting.argument for setting in found.settings})
    return found


def _of_libraries(arguments: Sequence[str], known: Collection[int | None]) -> Iterator[Setting]:
    """Numbers that the command line gives to options that a library has declared, as those of TrainingArguments."""
    for place, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        at = place if equals else place + 1
        if not name.startswith("--") or at in known or at >= len(arguments):
            continue
        number = _parsed(value if equals else arguments[at])
        own = name.lstrip("-").replace("-", "_")
        if isinstance(number, int | float) and not NOT_SETTINGS.fullmatch(own):
            yield Setting(own, "option", "", COMMAND_LINE, at + 1, number, argument=at)


def _given(setting: Setting, arguments: Sequence[str]) -> Setting:
    """An option as the command line gives it; else the same setting.

    An option may be made of a constant, of an entry of a dict or of a field: by a loop over them, or by ``globals()``.
    """
    if setting.kind not in GIVEN_TO:
        return setting
    for place, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name.lstrip("-").replace("-", "_") != setting.name.replace("-", "_") or not (name.startswith("-") or equals):
            continue
        if equals:
            return replace(setting, kind="option", value=_parsed(value), argument=place)
        if setting.flag:
            return replace(setting, value=not setting.value, argument=place)
        if place + 1 < len(arguments):
            return replace(setting, kind="option", value=_parsed(arguments[place + 1]), argument=place + 1)
    return setting


def _parsed(word: str) -> Any:
    try:
        return ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return word


@dataclass(frozen=True)
class _Call:
    name: str
    place: str
    positional: int
    keywords: frozenset[str]
    unknown: bool
    """Whether it passes arguments on that cannot be seen: ``*args``, ``**kwargs``."""


def _overridden(setting: Setting, calls: Iterable[_Call]) -> tuple[str | None, str | None]:
    """Where all calls give a function, or a class, another value than its default, and where any does; or None."""
    owner, _, place = setting.of.partition("#")
    of_owner = [each for each in calls if setting.kind == "default" and each.name == owner]
    gives = [setting.name in each.keywords or bool(place and each.positional > int(place)) for each in of_owner]
    all_give = bool(of_owner) and all(given or each.unknown for given, each in zip(gives, of_owner, strict=True))
    given_at = next((each.place for given, each in zip(gives, of_owner, strict=True) if given), None)
    return of_owner[0].place if all_give else None, given_at


class _Module:
    """The code of one file."""

    def __init__(self, file: str, data: bytes) -> None:
        self.file, self._data = file, data
        self._tree = ast.parse(data)
        self._starts = [0]
        for line in data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.calls = [_call(file, node) for node in ast.walk(self._tree) if isinstance(node, ast.Call)]
        self.attributes: list[tuple[str, str]] = []
        """Attributes of other objects than ``self`` that are given another value, with where."""
        self._assigned: Counter[str] = Counter()
        """Names and attributes, with how often they are assigned, or counted up."""
        self._lines = (0, 0)
        self._optimizer = self._dataclass = False
        """Whether the class at hand is one."""
        self._class_of = {
            id(part): outer.name
            for outer in ast.walk(self._tree)
            if isinstance(outer, ast.ClassDef)
            for part in ast.walk(outer)
            if isinstance(part, ast.Attribute)
        }
        self._fields = {
            id(target)
            for outer in ast.walk(self._tree)
            if isinstance(outer, ast.ClassDef)
            for statement in outer.body
            for target in (*getattr(statement, "targets", ()), getattr(statement, "target", None))
        }
        """The names that a class itself assigns: they are no variables of the module."""
        self._look_for_assignments()

    def _look_for_assignments(self) -> None:
        for node in ast.walk(self._tree):
            targets: list[ast.expr] = []
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, (ast.AugAssign, ast.For, ast.AsyncFor)):
                targets = [node.target, node.target]  # it changes
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                targets = [node.target]
            elif isinstance(node, ast.Global | ast.Nonlocal):
                self._assigned.update(node.names)
            for target in targets:
                for inner in ast.walk(target):
                    if (
                        isinstance(inner, ast.Name)
                        and isinstance(inner.ctx, ast.Store)
                        and id(inner) not in self._fields
                    ):
                        self._assigned[inner.id] += 1
                    elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                        self._assigned[self._name_of(inner)] += 1
                        its_own = isinstance(inner.value, ast.Name) and inner.value.id == "self"
                        value = getattr(node, "value", None)  # args.sizes = args.sizes.split(",") is the same one
                        parts = ast.walk(value) if isinstance(value, ast.AST) else ()
                        if not its_own and not any(getattr(part, "attr", None) == inner.attr for part in parts):
                            self.attributes.append((inner.attr, f"{self.file}:{inner.lineno}"))

    def _name_of(self, attribute: ast.Attribute) -> str:
        """What an assignment gives another value: an attribute, of the instances of one class where it is its own."""
        is_own = isinstance(attribute.value, ast.Name) and attribute.value.id == "self"
        return f"{self._class_of.get(id(attribute), '') if is_own else ''}.{attribute.attr}"

    def settings(self) -> Iterator[Setting]:
        yield from self._in(self._tree.body, "")

    def _in(self, body: Sequence[ast.AST], owner: str) -> Iterator[Setting]:
        """The settings of some statements; ``owner`` is the class that they are in."""
        for node in body:
            self._lines = _header_of(node)
            if isinstance(node, ast.ClassDef):
                around = self._optimizer, self._dataclass
                self._optimizer = any(dotted(base).endswith("Optimizer") for base in node.bases)
                self._dataclass = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
                yield from self._in(node.body, node.name)
                self._optimizer, self._dataclass = around
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for decorator in node.decorator_list:  # click has its options there
                    yield from self._inside(decorator)
                self._lines = (node.body[0].lineno, node.end_lineno or node.lineno)
                if not (owner and self._optimizer):  # defaults of an optimizer are those of groups that give none
                    yield from self._defaults(node, owner)
                yield from self._in(node.body, "")
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                yield from self._assignment(node, owner)
                yield from self._inside(node.value)
            else:
                for child in ast.iter_child_nodes(node):
                    yield from self._in([child], "") if isinstance(child, ast.stmt) else self._inside(child)

    def _inside(self, node: ast.AST) -> Iterator[Setting]:
        """The settings within an expression."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call):
                yield from self._call(inner)
            elif isinstance(inner, ast.Dict):
                for key, value in zip(inner.keys, inner.values, strict=True):
                    if (
                        isinstance(key, ast.Constant)
                        and isinstance(key.value, str)
                        and not NOT_SETTINGS.fullmatch(key.value)
                    ):
                        yield from self._setting(key.value, "entry", "", value)

    def _call(self, node: ast.Call) -> Iterator[Setting]:
        name = dotted(node.func)
        last = name.rpartition(".")[2]
        if last in SETTERS and node.args and isinstance(node.args[0], ast.Constant):
            yield from self._option(node, "" if last == "option" else ARGPARSE)
            return
        if last in ("field", "print", "format", "join", "open", "getattr", "setattr", "get"):
            return
        for keyword in node.keywords:
            if keyword.arg is not None and not NOT_SETTINGS.fullmatch(keyword.arg):
                yield from self._setting(keyword.arg, "entry" if last == "dict" else "argument", last, keyword.value)
        for known, given in zip(PLACES.get(last, ()), node.args, strict=False):
            if known is not None:
                yield from self._setting(known, "argument", last, given)

    def _option(self, node: ast.Call, of: str) -> Iterator[Setting]:
        words = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        flags = [each for each in words if PARSED.match(each)]
        if not flags:
            return
        long = max(flags, key=len).partition("/")[0]  # click: --shuffle/--no-shuffle
        given = {each.arg: each.value for each in node.keywords}
        name = long.lstrip("-").replace("-", "_")
        action = given.get("action")
        stores_a_flag = isinstance(action, ast.Constant) and action.value in ("store_true", "store_false")
        if NOT_SETTINGS.fullmatch(name):
            return
        if stores_a_flag or ("default" not in given and _literal(given.get("is_flag", node)) is True):
            if isinstance(dest := given.get("dest"), ast.Constant):
                name = str(dest.value)
            unless_given = isinstance(action, ast.Constant) and action.value == "store_false"
            yield Setting(name, "option", of, self.file, node.lineno, unless_given, lines=self._lines, flag=long)
        elif "default" in given:
            choices = given.get("choices")
            if isinstance(kind := given.get("type"), ast.Call) and dotted(kind.func).endswith("Choice") and kind.args:
                choices = kind.args[0]
            known = _literal(choices) if choices is not None else None
            for each in self._setting(name, "option", of, given["default"]):
                yield replace(each, line=node.lineno, choices=tuple(known) if isinstance(known, list | tuple) else ())

    def _defaults(self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str) -> Iterator[Setting]:
        given = node.args
        names = [*given.posonlyargs, *given.args]
        bound = 1 if names and names[0].arg in ("self", "cls") else 0
        of = owner if node.name == "__init__" and owner else node.name
        first = len(names) - len(given.defaults)
        for place, value in enumerate(given.defaults, start=first):
            if not NOT_SETTINGS.fullmatch(names[place].arg):
                yield from self._setting(names[place].arg, "default", f"{of}#{place - bound}", value)
        for name, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            if default is not None and not NOT_SETTINGS.fullmatch(name.arg):
                yield from self._setting(name.arg, "default", f"{of}#", default)

    def _assignment(self, node: ast.Assign | ast.AnnAssign, owner: str) -> Iterator[Setting]:
        value = node.value
        assert value is not None
        if owner and isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] == "field":
            value = next((each.value for each in value.keywords if each.arg == "default"), value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                key = target.slice.value
                if isinstance(key, str) and not NOT_SETTINGS.fullmatch(key) and "environ" not in dotted(target.value):
                    yield from self._setting(key, "entry", "", value)
                continue
            name = (
                target.id
                if isinstance(target, ast.Name)
                else self._name_of(target)
                if isinstance(target, ast.Attribute)
                else ""
            )
            shown = name.rpartition(".")[2]
            if not shown or shown.startswith("__") or NOT_SETTINGS.fullmatch(shown.lower()):
                continue
            if owner:
                yield from self._setting(shown, "default", owner, value)
            elif self._assigned[name] == 1:
                for setting in self._setting(shown, "constant", "", value):
                    meant = shown.isupper() or isinstance(setting.value, bool) or purpose(shown) is not None
                    if meant or setting.value not in COUNTERS:
                        yield setting

    def _setting(self, name: str, kind: Kind, of: str, node: ast.expr) -> Iterator[Setting]:
        value = _literal(node)
        if value is _NONE:
            return
        start, end = self._at(node.lineno, node.col_offset), self._at(node.end_lineno or 1, node.end_col_offset or 0)
        is_parameter = kind == "default" and ("#" in of or self._dataclass)
        place = (self.file, node.lineno, value, start, end)
        yield Setting(name, kind, of, *place, lines=self._lines, is_parameter=is_parameter)

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column


def _header_of(node: ast.AST) -> tuple[int, int]:
    """The lines of a statement, without those of the statements in it."""
    first = getattr(node, "lineno", 0)
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) and body else getattr(node, "end_lineno", first)
    return first, max(first, last)


_NONE = object()


def _literal(node: ast.expr) -> Any:
    """A number, a word, a truth value or a few numbers; else nothing that can be turned."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError):
        return _NONE
    if isinstance(value, str) and "\n" in value:
        return _NONE
    if isinstance(value, bool | int | float | str):
        return value
    numbers = isinstance(value, tuple | list) and value and all(isinstance(each, int | float | str) for each in value)
    return value if numbers else _NONE


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _call(file: str, node: ast.Call) -> _Call:
    unknown = any(isinstance(each, ast.Starred) for each in node.args) or any(
        each.arg is None for each in node.keywords
    )
    keywords = frozenset(each.arg for each in node.keywords if each.arg is not None)
    return _Call(dotted(node.func).rpartition(".")[2], f"{file}:{node.lineno}", len(node.args), keywords, unknown)
