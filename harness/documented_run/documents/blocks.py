"""The code blocks of a document, with what is printed below them.

Four forms are known: fenced blocks of Markdown and MDX, with the options of Hugging Face's doc-builder; cells of
notebooks; cells of an exported notebook ("In [None]:"); and listings whose line numbers were copied in front of them.
"""

from __future__ import annotations

import ast
import doctest
import io
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from harness.documented_run.documents import notebooks

FENCE = re.compile(r"^(?P<indent> *)(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
"""CommonMark's: closed by as many of the same marks, with nothing behind them."""

FRAMEWORK = re.compile(
    r"^\s*(?:\{(?:#if|:else if)\s+fw\s*===?\s*['\"](?P<begins>\w+)['\"]\s*\}|<(?P<tag>pt|tf|jax)>"
    r"|(?P<otherwise>\{:else\})|(?P<ends>\{/if\}|</(?:pt|tf|jax)>))\s*$"
)
"""Where MDX shows one framework's readers what others do not see."""

OTHER = {"pt": "tf", "tf": "pt"}

RUNNABLE = re.compile(r"(?:^|\s)runnable(?::(?P<label>\S+))?(?=\s|$)")
CONTINUES = re.compile(r"(?P<label>.+):[1-9]\d*")
"""doc-builder's option of a fence (docs/runnable-code-blocks.md): blocks of one label run in a namespace of theirs."""

DECORATOR = re.compile(r"^#\s*pytest-decorator:\s*(.+)$", re.MULTILINE)
SHELL = re.compile(r"^(?P<indent>\s*)[!！%?].*$")  # noqa: RUF001
OTHER_CELL = re.compile(r"^\s*%%(?!time\b|timeit\b|capture\b)(?P<of>\w+)")
"""IPython's lines that are not Python, and cells that are not."""

LANGUAGES = ("", "py", "python", "python3", "pycon", "ipython")
OUTPUT = ("python out", "output", "out", "text", "txt")
"""What is written behind an opening fence: of code to be run, and of what it printed."""

CELL = re.compile(r"^In \[(None|\d*| )\]:\s*$")
CODE = re.compile(r"^\s*(import |from \w+ import|def |class |for .*:$|while .*:$|if .*:$|with .*:$|\w+ = |!|%)")

RULE = re.compile(r"^-{5,}\s*$")
"""Some readers draw a line between code and output."""

LOST_INDENTATION = "the copy lost its indentation"

Stretch = Literal["code", "output", "text"]
"""What lines of a block are; text is what only stands between fences."""

NAMED = 3
"""Calls that a block is named by, at most."""


@dataclass(frozen=True)
class Block:
    """A block of code.

    ``why_not`` says why it is no Python that could be run.
    """

    document: str
    file: str
    number: int
    """Number of the block in its document, counted from 1."""
    line: int
    """Line in the document, counted from 1."""
    code: str
    printed: str = ""
    """The output that the document shows for it."""
    why_not: str | None = None
    lines: tuple[int, int] = (1, 1)
    """The first and last line, counted from 1, of what it stands in: the document, or the source of its cell."""
    cell: int | None = None
    """Number of its cell in a notebook, counted from 1."""
    framework: str | None = None
    """Whose readers see it, where the document has alternatives: "pt", "tf", "jax"."""
    runnable: str | None = None
    """The label of doc-builder's blocks that run in a namespace of theirs."""
    raises: str | None = None
    """The error that the document shows as its output."""

    @property
    def python(self) -> str:
        """What is executed: the code, without IPython's lines of other languages."""
        return python_of(self.code)

    @property
    def decorators(self) -> tuple[str, ...]:
        """Dotted names of the decorators of the test that doc-builder makes of it."""
        return tuple(
            name.strip() for names in DECORATOR.findall(self.code) for name in names.split(",") if name.strip()
        )

    @property
    def label(self) -> str:
        """The names that it imports or calls first."""
        return ", ".join(_names(self.python)[:NAMED]) or "no call"

    @property
    def assigns(self) -> set[str]:
        """The names that it gives a value."""
        if _statements(self.python.splitlines()) is None:
            return set()
        return {
            each.id
            for each in ast.walk(_parsed(self.python))
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }

    @property
    def key(self) -> str:
        return key_of(self.code)


def key_of(code: str) -> str:
    """Equal for code that differs in comments and layout only."""
    try:
        return ast.unparse(_parsed(python_of(code)))
    except SyntaxError:
        return "\n".join(line.strip() for line in code.splitlines())


def python_of(code: str) -> str:
    """Code as Python runs it: commands of the shell and IPython's magics, if it has some, do nothing."""
    if _statements(code.splitlines()) is not None:
        return code
    without = "\n".join(SHELL.sub(r"\g<indent>pass", line) for line in code.splitlines())
    return code if _statements(without.splitlines()) is None else without


def blocks_of(path: Path, file: str | None = None) -> list[Block]:
    """The blocks of a document, in order; ``file`` is what it is called.

    Raises:
        OSError, UnicodeDecodeError: it cannot be read.
        ValueError: it is no notebook that can be read.
    """
    text, file = path.read_text(encoding="utf-8-sig"), file or path.name
    document, found = path.stem.partition("_")[0], list[Block]()
    raws = _cells(text) if path.suffix == ".ipynb" else _raw(text.splitlines())
    for raw in _labelled(raws):
        for code, printed in _code_and_output(raw, bool(found)):
            if not code and found and not found[-1].printed:
                found[-1] = replace(found[-1], printed=printed)  # set apart from the code that printed it
                continue
            block = Block(document, file, len(found) + 1, raw.line, code, printed, _why_not(code, raw.is_python))
            first = raw.line if raw.cell is None else 1
            found.append(
                replace(
                    block,
                    lines=(first, first + len(raw.lines) - 1),
                    cell=raw.cell,
                    framework=raw.framework,
                    runnable=raw.runnable,
                    raises=raw.raises,
                )
            )
    return found


def stretches(lines: Sequence[str]) -> Iterator[tuple[list[int], Stretch]]:
    """The lines that stand in a document's blocks, by number from 1: code, output, and text between fences."""
    for count, raw in enumerate(_raw(lines)):
        at = raw.line
        pieces = [("", _joined(raw.lines))] if raw.continues and count else [*_parted(raw.lines)]
        for code, printed in pieces:
            is_text = bool(code) and _why_not(code, raw.is_python) == "not Python"
            both: tuple[tuple[str, Stretch], ...] = ((code, "text" if is_text else "code"), (printed, "output"))
            for piece, kind in both:
                numbers = []
                for line in filter(str.strip, piece.splitlines()):
                    at = next(n for n in range(at, raw.line + len(raw.lines)) if raw.lines[n - raw.line] == line) + 1
                    numbers.append(at - 1)
                if numbers:
                    yield numbers, kind


def _code_and_output(raw: _Raw, follows: bool) -> Iterable[tuple[str, str]]:
    if raw.continues and follows:
        return [("", _joined(raw.lines))]
    if raw.shown is not None:
        return [(_joined(raw.lines), raw.shown)]
    return _parted(raw.lines)


def _cells(text: str) -> Iterator[_Raw]:
    for cell in notebooks.cells_of(text):
        lines = cell.source.splitlines()
        if any(line.strip() for line in lines):
            shown = cell.printed or ("" if cell.raises else None)
            yield _Raw(cell.line, lines, cell=cell.number, shown=shown, raises=cell.raises)


def _labelled(raws: Iterable[_Raw]) -> Iterator[_Raw]:
    """Blocks, each with the label of the block that it continues."""
    labels: set[str] = set()
    for raw in raws:
        label = raw.runnable
        if label is not None and (match := CONTINUES.fullmatch(label)) and match["label"] in labels:
            label = match["label"]
        elif label == "":
            label = f"line {raw.line}"
        if label is not None:
            labels.add(label)
        yield raw._replace(runnable=label)


def with_indentation(documents: Sequence[Sequence[Block]]) -> list[list[Block]]:
    """The documents; a copy that lost its indentation has that of another one, where they differ in nothing else."""
    whole = {_bare(block.code): block.code for blocks in documents for block in blocks if block.why_not is None}
    return [
        [
            replace(block, code=whole[_bare(block.code)], why_not=None)
            if block.why_not == LOST_INDENTATION and _bare(block.code) in whole
            else block
            for block in blocks
        ]
        for blocks in documents
    ]


def _bare(code: str) -> str:
    """Code without layout, comments, and the commas that close a list."""
    lines = "".join(re.sub(r"\s+#.*$", "", line).strip() for line in code.splitlines())
    return re.sub(r",\)", ")", re.sub(r"\s", "", lines))


class _Raw(NamedTuple):
    line: int
    """Number of its first line."""
    lines: list[str]
    continues: bool = False
    """Whether it is the output of the block before."""
    is_python: bool = True
    """Whether the document says so."""
    framework: str | None = None
    runnable: str | None = None
    cell: int | None = None
    shown: str | None = None
    """The output that is stored with it."""
    raises: str | None = None


def _raw(lines: Sequence[str]) -> Iterator[_Raw]:
    """The blocks as they stand in the document."""
    at, ended, framework = 0, -1, None
    while at < len(lines):
        if fence := FENCE.match(lines[at]):
            end = next((n for n in range(at + 1, len(lines)) if _closes(lines[n], fence)), len(lines))
            for raw in _fenced(lines, at, end, fence):
                yield raw._replace(framework=framework)
            at = end + 1
        elif CELL.match(lines[at]):
            end = next((n for n in range(at + 1, len(lines)) if CELL.match(lines[n])), len(lines))
            yield _Raw(at + 2, _without_prose(lines[at + 1 : end]))
            at = end
        elif count := _numbered(lines, at):
            yield _Raw(at + count + 1, list(lines[at + count : at + 2 * count]), continues=at == ended)
            at = ended = at + 2 * count
        else:
            if choice := FRAMEWORK.match(lines[at]):
                otherwise = OTHER.get(framework or "") if choice["otherwise"] else None
                framework = choice["begins"] or choice["tag"] or otherwise
            at += 1


def _fenced(lines: Sequence[str], at: int, end: int, fence: re.Match[str]) -> Iterator[_Raw]:
    """The block between two fences, if it is code or output, and an output right below it."""
    words = re.sub(r"[{}]|\btitle=.*", " ", fence["info"]).lower().split()
    language = words[0].lstrip(".").rstrip(":") if words else ""
    is_output = " ".join(words) in OUTPUT or words[1:2] == ["out"]
    if not is_output and language not in LANGUAGES:
        return
    block = [line[min(len(fence["indent"]), len(line) - len(line.lstrip())) :] for line in lines[at + 1 : end]]
    runnable = RUNNABLE.search(fence["info"])
    label = None if runnable is None else runnable["label"] or ""
    yield _Raw(at + 2, block, is_output, is_python=bool(language), runnable=label)
    output = _indented(lines, end + 1)
    if output and not is_output:
        yield _Raw(end + 2, output, continues=True)


def _closes(line: str, fence: re.Match[str]) -> bool:
    marks = line.strip()
    return len(marks) >= len(fence["marks"]) and set(marks) == {fence["marks"][0]}


def _numbered(lines: Sequence[str], at: int) -> int:
    """How many line numbers begin here: 1, 2, ... each on a line of its own."""
    count = 0
    while at + count < len(lines) and lines[at + count].strip() == str(count + 1):
        count += 1
    return count


def _indented(lines: Sequence[str], at: int) -> list[str]:
    """The lines right below a fence that Markdown shows as they are."""
    end = next((n for n in range(at, len(lines)) if not lines[n].startswith("    ")), len(lines))
    return [line[4:] for line in lines[at:end]]


def _without_prose(lines: Sequence[str]) -> list[str]:
    """A notebook's cell without the text below it.

    Text begins at a heading, or at a line that has names in another script or does not look like code.
    """
    kept: list[str] = []
    for line in lines:
        words = line.split("#")[0]
        outside_strings = re.sub(r"'[^']*'|\"[^\"]*\"", "", words)
        if re.match(r"^#{3,}", line) or not outside_strings.isascii():
            break
        kept.append(line)
    return kept


def _parted(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Code and printed output; several pairs where code follows the output of other code."""
    if any(line.startswith(">>> ") for line in lines):
        for example in doctest.DocTestParser().get_examples("\n".join(lines)):
            yield example.source.rstrip("\n"), example.want.rstrip("\n")
        return
    if _lost_indentation(lines):
        yield _joined(lines), ""
        return
    rule = next((n for n, line in enumerate(lines) if RULE.match(line)), None)
    if rule is not None:
        yield _joined(lines[:rule]), _joined(lines[rule + 1 :])
        return
    # The longest beginning that is Python, where what follows is no code; otherwise all of it is code that is not.
    end = next((n for n in range(len(lines), 0, -1) if _statements(lines[:n])), 0)
    if any(CODE.match(line) for line in lines[end:]):
        end = 0
    code, printed = lines[: end or len(lines)], lines[end:] if end else []
    tree = _statements(code) or []
    for number, statement in enumerate(tree):
        if _is_output(statement, tree[number - 1] if number else None):
            first = statement.lineno - 1
            rest = next((each for each in tree[number + 1 :] if not _is_output(each, None)), None)
            last = len(code) if rest is None else rest.lineno - 1
            if number:
                yield _joined(code[:first]), _joined([*code[first:last], *([] if rest else printed)])
            else:
                yield "", _joined([*code[:last], *printed])
            if rest is not None:
                yield from _parted([*code[last:], *printed])
            return
    if any(line.strip() for line in code):
        yield _joined(code), _joined(printed)


def _is_output(statement: ast.stmt, before: ast.stmt | None) -> bool:
    """Whether a statement is what was printed: a value written out below an expression, or that expression's repr."""
    if not isinstance(statement, ast.Expr):
        return False
    if before is not None and not isinstance(before, ast.Expr):
        return False
    value = statement.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Tuple):
        return True  # "(408, 2) (408,)"
    if _is_literal(value):
        return not (isinstance(value, ast.Constant) and (value.value is ... or isinstance(value.value, str)))
    if isinstance(value, (ast.Dict, ast.List)):  # of other reprs, such as torch.Size([8, 65])
        names = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
        return names <= {"torch", "Value", "ClassLabel", "tensor", "array"}
    shown = before.value if before is not None else None
    called = value.func if isinstance(value, ast.Call) else None
    return isinstance(shown, ast.Name) and isinstance(called, ast.Name) and shown.id == called.id


def _is_literal(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError):
        return False
    return True


def _statements(lines: Sequence[str]) -> list[ast.stmt] | None:
    try:
        return _parsed("\n".join(lines)).body or None
    except SyntaxError:
        return None


def _parsed(code: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the documents' strings, which are not ours
        return ast.parse(code)


def _lost_indentation(lines: Sequence[str]) -> bool:
    try:
        ast.parse("\n".join(lines))
    except IndentationError as error:
        return error.msg.startswith("expected an indented block")
    except SyntaxError:
        pass
    return False


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(lines).strip("\n")


def _why_not(code: str, is_python: bool) -> str | None:
    if not code.strip():
        return "an output without its code"
    if re.match(r"^\s*accelerate (config|launch)", code):
        return "a command of the shell"
    if other := OTHER_CELL.match(code):
        return f"a cell of %%{other['of']}"
    if re.search(r"^[+-] ", code, re.MULTILINE):
        return "a list of changes"
    python = python_of(code)
    try:
        tree = _parsed(python)
    except IndentationError:
        return LOST_INDENTATION
    except SyntaxError:
        if re.match(r"^\s*[!！]", code):  # noqa: RUF001
            return "a command of the shell"
        if _is_a_patch(python):
            return "a list of changes"
        return None if is_python else "not Python"  # a reader who copies it meets the error
    if python != code and all(isinstance(each, ast.Pass) for each in tree.body):
        return "a command of the shell"
    return None


def _is_a_patch(code: str) -> bool:
    """Whether it is Python once the lines with a minus are gone, and the plus of those that come in their place."""
    kept = [line for line in code.splitlines() if not re.match(r"\s*-", line)]
    after = [re.sub(r"^(\s*)\+", r"\1", line) for line in kept]
    return after != code.splitlines() and _statements(after) is not None


def _names(code: str) -> list[str]:
    """What is imported and called, in order, each once."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return _names_of_tokens(code)
    names: dict[str, None] = {}
    for node in sorted(ast.walk(tree), key=lambda each: (getattr(each, "lineno", 0), getattr(each, "col_offset", 0))):
        if isinstance(node, ast.ImportFrom):
            names |= dict.fromkeys(f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            names |= dict.fromkeys(each.name for each in node.names)
        elif isinstance(node, ast.Call):
            names.setdefault(f"{ast.unparse(node.func)}()")
    return list(names)


def _names_of_tokens(code: str) -> list[str]:
    """The names of code that cannot be parsed."""
    names: dict[str, None] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type == tokenize.NAME and token.string not in ("from", "import"):
                names.setdefault(token.string)
    except (tokenize.TokenError, SyntaxError):
        pass
    return list(names)
