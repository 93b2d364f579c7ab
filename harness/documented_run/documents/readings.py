"""Order in which, and blocks after which, the blocks of a document are executed; and which of them are the same.

A block relies on blocks before it. Two blocks with the same code, comments and layout apart, behave alike where all
that they rely on is alike too; then one of them is executed, and the other is its copy.
"""

from __future__ import annotations

import builtins
import hashlib
import symtable
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.documented_run.documents.blocks import Block

BUILTIN = set(dir(builtins))


class ReadingStep(NamedTuple):
    """A block in its turn."""

    block: Block
    identity: str
    """Equal for blocks that behave alike."""
    relies_on: tuple[int, ...]
    """The places of earlier blocks that must have been executed; what they share names with, directly or not."""


def readings_of(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """The blocks of a document as they are executed, each reading in a namespace of its own.

    First those of each label of doc-builder's ``runnable``; then the document from its beginning to its end, once for
    each framework that it has alternatives for. A block counts in the first reading that has it.
    """
    for label in dict.fromkeys(each.runnable for each in blocks):
        if label is not None:
            yield [each for each in blocks if each.runnable == label]
    frameworks = dict.fromkeys(each.framework for each in blocks)
    for framework in frameworks:
        if framework is not None or len(frameworks) == 1:
            yield [each for each in blocks if each.framework in (None, framework)]


def steps_of(blocks: Sequence[Block]) -> list[ReadingStep]:
    """What each block of a reading relies on.

    Blocks that mention one variable may change it for each other, so they, and all that is connected by further
    variables, are relied on together. Names that are only ever imported connect nothing, but need their import.
    """
    names = [_Names.of(block) for block in blocks]
    own = set[str]().union(*(each.assigns | each.imports for each in names))
    names = [each._replace(mentions=each.mentions - (BUILTIN - own)) for each in names]
    imported = set[str]().union(*(each.imports for each in names)) - set[str]().union(*(each.assigns for each in names))
    steps: list[ReadingStep] = []
    groups: list[tuple[set[str], set[int]]] = []
    """Variables that are connected so far, and the places of the blocks that mention them."""
    for at, block in enumerate(blocks):
        variables, places = names[at].mentions - imported, {at}
        for group in [each for each in groups if each[0] & variables]:
            groups.remove(group)
            variables, places = variables | group[0], places | group[1]
        groups.append((variables, places))
        relies_on = _with_imports(at, places, names, imported, steps)
        steps.append(ReadingStep(block, _identity(at, blocks, relies_on, names, steps), relies_on))
    return steps


def _with_imports(
    at: int, places: set[int], names: Sequence[_Names], imported: set[str], steps: Sequence[ReadingStep]
) -> tuple[int, ...]:
    """The places besides ``at``, those that import what is used there, and what these rely on."""
    wanted = set[str]().union(*(names[each].mentions & imported for each in places))
    found = places | {place for place in range(at) if names[place].imports & wanted}
    for place in found - {at}:
        found = found.union(steps[place].relies_on)
    return tuple(sorted(found - {at}))


def _identity(
    at: int, blocks: Sequence[Block], relies_on: Sequence[int], names: Sequence[_Names], steps: Sequence[ReadingStep]
) -> str:
    block = blocks[at]
    made = set[str]().union(*(names[place].assigns | names[place].imports for place in range(at)))
    lacks = names[at].reads - made
    # A name that is missing is taken from a block further down, or the reader is told which block would have made it.
    later = [each.key for each, its in zip(blocks[at + 1 :], names[at + 1 :], strict=True) if its.assigns & lacks]
    parts = [block.key, str(block.why_not), str(block.raises), *block.decorators, *later]
    parts += [steps[place].identity for place in relies_on]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class _Names(NamedTuple):
    """The global names of a block."""

    mentions: set[str]
    reads: set[str]
    assigns: set[str]
    imports: set[str]

    @classmethod
    def of(cls, block: Block) -> _Names:
        if block.why_not is not None:
            return cls(set(), set(), set(), set())
        try:
            top = symtable.symtable(block.python, block.file, "exec")
        except (SyntaxError, ValueError):
            return cls(set(), set(), set(), set())  # it does nothing but fail
        symbols = top.get_symbols()
        imports = {each.get_name() for each in symbols if each.is_imported()}
        assigns = {each.get_name() for each in symbols if each.is_assigned()} - imports
        assigns |= {
            each.get_name() for inner in _below(top) for each in inner.get_symbols() if each.is_declared_global()
        }
        of_inner = {each.get_name() for inner in _below(top) for each in inner.get_symbols() if each.is_global()}
        mentions = {each.get_name() for each in symbols} | of_inner
        reads = {each.get_name() for each in symbols if each.is_referenced()} | of_inner
        return cls(mentions, reads, assigns, imports)


def _below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _below(child)
