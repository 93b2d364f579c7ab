"""A file of the user's as LibCST reads it, and the edits that repairs are made of.

An edit is a new module: what it does not touch is as it was, comments, line ends and tabs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

Node = TypeVar("Node", bound=cst.CSTNode)
Statement = cst.BaseSmallStatement | cst.BaseCompoundStatement
Change = Callable[[Any], Any]

LOOPS = (cst.For, cst.While)
SCOPES = (cst.FunctionDef, cst.Module)


class Source:
    """One file.

    Raises:
        ParserSyntaxError: of libcst: it is not Python that LibCST reads.
    """

    def __init__(self, data: bytes) -> None:
        wrapper = MetadataWrapper(cst.parse_module(data))
        self.module = wrapper.module
        self._positions = wrapper.resolve(PositionProvider)
        self._parents = wrapper.resolve(ParentNodeProvider)

    # What stands where

    def statement(self, line: int) -> Statement | None:
        """The smallest statement that the line is in."""
        found = [each for each in self._statements if self.first(each) <= line <= self.last(each)]
        return min(found, key=self._extent, default=None)

    def _extent(self, statement: Statement) -> tuple[int, bool]:
        return self.last(statement) - self.first(statement), isinstance(statement, cst.BaseCompoundStatement)

    @cached_property
    def _statements(self) -> list[Statement]:
        kinds = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
        return [each for each in self._positions if isinstance(each, kinds)]

    def first(self, node: cst.CSTNode) -> int:
        """First line of a node."""
        return int(self._positions[node].start.line)

    def last(self, node: cst.CSTNode) -> int:
        return int(self._positions[node].end.line)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode:
        return self._parents[node]

    def above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What it is in, the innermost first; the module last."""
        while node in self._parents:
            node = self._parents[node]
            yield node

    def enclosing(self, node: cst.CSTNode, kind: type[Node] | tuple[type[Node], ...]) -> list[Node]:
        """What it is in of that kind, in the same function, the innermost first."""
        found: list[Node] = []
        for above in self.above(node):
            if isinstance(above, kind):
                found.append(above)
            if isinstance(above, SCOPES):
                break
        return found

    def scope(self, node: cst.CSTNode) -> cst.FunctionDef | cst.Module:
        """The function that it is in, or the module."""
        return next(each for each in self.above(node) if isinstance(each, SCOPES))

    def statement_of(self, node: cst.CSTNode) -> Statement:
        """The smallest statement that holds a node."""
        kinds = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
        return node if isinstance(node, kinds) else next(each for each in self.above(node) if isinstance(each, kinds))

    def all(self, within: cst.CSTNode, kind: type[Node]) -> list[Node]:
        """All nodes of a kind, in their order in the file."""
        found: list[Node] = []

        class Collector(cst.CSTVisitor):
            def on_visit(self, node: cst.CSTNode) -> bool:
                if isinstance(node, kind):
                    found.append(node)
                return True

        within.visit(Collector())
        return found

    def calls(self, within: cst.CSTNode, *names: str) -> list[cst.Call]:
        """Calls of functions or methods that are named so; of all without a name."""
        return [each for each in self.all(within, cst.Call) if not names or called(each) in names]

    def code(self, node: cst.CSTNode) -> str:
        return self.module.code_for_node(node)

    def siblings(self, statement: cst.CSTNode) -> Sequence[cst.CSTNode]:
        """What stands in the same block, itself among them."""
        _, block = self.unit(statement)
        body: Sequence[cst.CSTNode] = block.body  # type: ignore[attr-defined]
        return body

    def unit(self, statement: cst.CSTNode) -> tuple[cst.CSTNode, cst.CSTNode]:
        """What stands in a block where this statement is: its line, or the statement alone among others by semicolon;
        and that block."""
        node = statement
        for parent in self.above(statement):
            if isinstance(parent, cst.IndentedBlock | cst.Module | cst.SimpleStatementSuite):
                return node, parent
            if isinstance(parent, cst.SimpleStatementLine) and len(parent.body) > 1:
                return node, parent
            node = parent
        raise ValueError("a module stands in no block")

    def beside(self, one: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Whether they stand in the same block."""
        return self.unit(one)[1] is self.unit(other)[1]

    # Edits

    def edited(self, changes: Mapping[cst.CSTNode, Sequence[Change]]) -> cst.Module:
        """The module with each of these nodes changed."""
        return self.module.visit(_Edits(changes))

    def exchanged(self, nodes: Mapping[Any, cst.CSTNode]) -> cst.Module:
        """Module with other nodes in the place of some."""
        return self.edited(self.exchange(nodes))

    def exchange(self, nodes: Mapping[Any, cst.CSTNode]) -> dict[cst.CSTNode, list[Change]]:
        return {old: [_put(new)] for old, new in nodes.items()}

    def replaced(self, old: cst.CSTNode, code: str) -> cst.Module:
        """Module with another expression in the place of one."""
        return self.exchanged({old: self.expression(code)})

    def called_otherwise(self, call: cst.Call, name: str) -> cst.Module:
        """Module with a call of another function of the same module, or of another method."""
        old = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
        return self.exchanged({old: old.with_changes(value=name)})

    def expression(self, code: str) -> cst.BaseExpression:
        return cst.parse_expression(code, config=self.module.config_for_parsing)

    def inserted(self, code: str, *, before: cst.CSTNode | None = None, after: cst.CSTNode | None = None) -> cst.Module:
        """Module with another line before or after a statement."""
        return self.edited(self.insertion(code, before=before, after=after))

    def insertion(
        self, code: str, *, before: cst.CSTNode | None = None, after: cst.CSTNode | None = None
    ) -> dict[cst.CSTNode, list[Change]]:
        target, block = self.unit(before or after)  # type: ignore[arg-type]
        new = cst.parse_statement(code, config=self.module.config_for_parsing)
        return {target: [_beside(self._fitting(new, block), before=before is not None)]}

    def surrounded(self, statement: cst.CSTNode, first: str, last: str) -> cst.Module:
        """Module with a line before a statement and one after it."""
        (target, before), (_, after) = (
            *self.insertion(first, before=statement).items(),
            *self.insertion(last, after=statement).items(),
        )

        def change(node: Any) -> Any:
            *above, statement = before[0](node)
            return cst.FlattenSentinel([*above, *after[0](statement)])

        return self.edited({target: [change]})

    def body(self, compound: cst.CSTNode) -> Sequence[cst.CSTNode]:
        found: Sequence[cst.CSTNode] = compound.body.body  # type: ignore[attr-defined]
        return found

    def removal(self, statement: cst.CSTNode) -> dict[cst.CSTNode, list[Change]]:
        """Changes that remove a statement: its blank lines stay for what comes after it, its comments go with it."""
        unit, _ = self.unit(statement)
        changes: dict[cst.CSTNode, list[Change]] = {unit: [lambda _: cst.RemoveFromParent()]}
        after = list(self.siblings(statement))
        following = after[after.index(unit) + 1 :]
        blank, _ = _blank_and_rest(unit)
        if blank and following and not _blank_and_rest(following[0])[0]:
            changes[following[0]] = [lambda node: node.with_changes(leading_lines=(*blank, *node.leading_lines))]
        return changes

    def removed(self, statement: cst.CSTNode) -> cst.Module:
        return self.edited(self.removal(statement))

    def moved(
        self, *statements: cst.CSTNode, before: cst.CSTNode | None = None, after: cst.CSTNode | None = None
    ) -> cst.Module:
        """Module with statements moved before or after another one, with their comments."""
        target, block = self.unit(before or after)  # type: ignore[arg-type]
        changes: dict[cst.CSTNode, list[Change]] = {}
        lines = []
        for statement in statements:
            unit, _ = self.unit(statement)
            if isinstance(unit, cst.BaseSmallStatement):
                unit = cst.SimpleStatementLine([unit.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])
            bare = unit.with_changes(leading_lines=_blank_and_rest(unit)[1])
            for node, made in self.removal(statement).items():
                changes.setdefault(node, []).extend(made)
            lines.append(self._fitting(bare, block))
        changes.setdefault(target, []).append(_beside(*lines, before=before is not None))
        return self.edited(changes)

    def _fitting(self, line: cst.CSTNode, block: cst.CSTNode) -> cst.CSTNode:
        """A line as it stands in a block, or in a line of several statements.

        Raises:
            DoesNotFit: it has a block of its own, for which there is no room in a line.
        """
        if isinstance(block, cst.IndentedBlock | cst.Module):
            return line
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
            return line.body[0]
        raise DoesNotFit


class DoesNotFit(Exception):
    """An edit cannot be written where it is meant to be."""


class _Edits(cst.CSTTransformer):
    def __init__(self, changes: Mapping[cst.CSTNode, Sequence[Change]]) -> None:
        super().__init__()
        self.changes = changes

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        for change in self.changes.get(original_node, ()):
            updated_node = change(updated_node)
        return updated_node


def _blank_and_rest(node: cst.CSTNode) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """The blank lines above a statement up to its first comment, and what follows them."""
    lines = list(getattr(node, "leading_lines", ()))
    blank = next((i for i, each in enumerate(lines) if each.comment is not None), len(lines))
    return lines[:blank], lines[blank:]


def _beside(*new: cst.CSTNode, before: bool) -> Change:
    def change(node: Any) -> Any:
        if not before:
            return cst.FlattenSentinel([node, *new])
        blank, rest = _blank_and_rest(node)
        first: Any = new[0]
        if not blank or not hasattr(first, "leading_lines"):
            return cst.FlattenSentinel([*new, node])
        above = first.with_changes(leading_lines=(*blank, *first.leading_lines))
        return cst.FlattenSentinel([above, *new[1:], node.with_changes(leading_lines=rest)])

    return change


def _put(new: cst.CSTNode) -> Change:
    return lambda _: new


# What an expression is


def called(call: cst.Call) -> str:
    """The name of the function or method that is called; empty where it has none."""
    function = call.func
    if isinstance(function, cst.Attribute):
        return function.attr.value
    return function.value if isinstance(function, cst.Name) else ""


def receiver(call: cst.Call) -> cst.BaseExpression | None:
    """Object of which a method is called."""
    return call.func.value if isinstance(call.func, cst.Attribute) else None


def dotted(node: cst.CSTNode | None) -> str:
    """The name of a variable or attribute, ``self.optimizer``; empty of other expressions."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr.value}"
    return ""


def argument(call: cst.Call, name: str, place: int | None = None) -> cst.Arg | None:
    """An argument by its name, or by its place among those without."""
    for passed in call.args:
        if passed.keyword is not None and passed.keyword.value == name:
            return passed
    positional = [each for each in call.args if each.keyword is None and not each.star]
    return positional[place] if place is not None and place < len(positional) else None


def with_argument(call: cst.Call, name: str, value: str) -> cst.Call:
    """A call with a keyword argument more, or with another value for it."""
    given, expression = argument(call, name), cst.parse_expression(value)
    if given is not None:
        return call.with_changes(
            args=[each.with_changes(value=expression) if each is given else each for each in call.args]
        )
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    new = cst.Arg(expression, keyword=cst.Name(name), equal=equal)
    if call.args and isinstance(last := call.args[-1].comma, cst.Comma):  # as the one before: on a line of its own
        between = call.args[-2].comma if len(call.args) > 1 else cst.Comma(call.whitespace_before_args)
        return call.with_changes(
            args=[*call.args[:-1], call.args[-1].with_changes(comma=between), new.with_changes(comma=last)]
        )
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    before = [*call.args[:-1], call.args[-1].with_changes(comma=comma)] if call.args else []
    return call.with_changes(args=[*before, new])


def without_argument(call: cst.Call, name: str) -> cst.Call:
    """A call without a keyword argument."""
    kept = [each for each in call.args if each.keyword is None or each.keyword.value != name]
    if kept and len(kept) < len(call.args) and call.args[-1] not in kept:
        kept[-1] = kept[-1].with_changes(comma=call.args[-1].comma)
    return call.with_changes(args=kept)


def is_true(arg: cst.Arg | None) -> bool:
    return arg is not None and isinstance(arg.value, cst.Name) and arg.value.value == "True"


def targets(assign: cst.CSTNode) -> list[str]:
    """The names that an assignment gives something to."""
    nodes = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else []
    if isinstance(assign, cst.AnnAssign):
        nodes = [assign.target]
    return [dotted(node) for each in nodes for node in (_elements(each) or [each])]


def _elements(node: cst.CSTNode) -> list[cst.BaseExpression]:
    return [each.value for each in node.elements] if isinstance(node, cst.Tuple | cst.List) else []


def looks_like(name: str, what: str) -> bool:
    return re.search(what, name, re.IGNORECASE) is not None
