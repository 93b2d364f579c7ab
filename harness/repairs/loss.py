"""Losses: of logits and targets of one shape and one batch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.names import rebound
from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import Source, argument, called, dotted, looks_like, receiver, targets

LOSSES = "loss|entropy|criterion|div"


@repairs("loss::broadcast")
def broadcast(fault: RepairTarget) -> Iterator[cst.Module]:
    """Take the last dimension, of size 1, from the predictions, or from the targets."""
    source = fault.source
    for call in source.calls(fault.statement):
        if looks_like(called(call), LOSSES) and len(call.args) >= 2:
            yield from squeezed(source, [call.args[0].value, call.args[1].value])
    for operation in source.all(fault.statement, cst.BinaryOperation):
        if isinstance(operation.operator, cst.Subtract):
            yield from squeezed(source, [operation.left, operation.right])


def squeezed(source: Source, sides: list[cst.BaseExpression]) -> Iterator[cst.Module]:
    """One of the two sides without a last dimension of size 1."""
    for side in sides:
        yield source.replaced(side, f"{_of(source, side)}.squeeze(-1)")


def _of(source: Source, node: cst.BaseExpression) -> str:
    """Code of which a method can be called."""
    simple = isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Subscript) or node.lpar
    return source.code(node) if simple else f"({source.code(node)})"


@repairs("loss::not-raw-logits")
def not_raw_logits(fault: RepairTarget) -> Iterator[cst.Module]:
    """Leave the softmax to the loss; take its logarithm where the loss wants that."""
    source, statement = fault.source, fault.statement
    for call in _softmaxes(source, statement):
        if fault.details.get("takes") == "log-probabilities":
            yield source.called_otherwise(call, "log_softmax")
        else:
            yield source.replaced(call, source.code(_without_softmax(call)))
    read = {each.value for each in source.all(statement, cst.Name)}
    for assign in source.all(fault.scope, cst.Assign):
        if read & set(targets(assign)) and not _is_read_elsewhere(source, fault, targets(assign)):
            for call in _softmaxes(source, assign):
                yield source.replaced(call, source.code(_without_softmax(call)))
    if not _tells_how_sure(source):
        yield from _model_without_softmax(source)


@repairs("loss::axes-mixed")
def axes_mixed(fault: RepairTarget) -> Iterator[cst.Module]:
    """Move the axis of the classes, where a view gave them another place."""
    source = fault.source
    calls = [call for node in (fault.statement, fault.scope) for call in source.calls(node, "view", "reshape")]
    for call in dict.fromkeys(calls):
        of, sizes = receiver(call), call.args
        if dotted(of) == "torch" and sizes:
            of, sizes = sizes[0].value, sizes[1:]
        alone = sizes[0].value if len(sizes) == 1 else None
        axes = alone.elements if isinstance(alone, cst.Tuple | cst.List) else sizes
        if of is not None and len(axes) > 2:
            yield source.replaced(call, f"{_of(source, of)}.movedim(-1, 1)")


def _softmaxes(source: Source, node: cst.CSTNode) -> list[cst.Call]:
    return [each for each in source.calls(node, "softmax") if receiver(each) is not None or each.args]


def _without_softmax(call: cst.Call) -> cst.BaseExpression:
    """x of ``x.softmax(dim=-1)``, of ``functional.softmax(x, dim=-1)`` and of ``self.softmax(x)``."""
    of = receiver(call)
    module = dotted(of).rpartition(".")[2] in ("torch", "F", "functional", "self") and call.args
    return call.args[0].value if of is None or module else of


def _is_read_elsewhere(source: Source, fault: RepairTarget, names: list[str]) -> bool:
    return any(
        each.value in names and source.statement_of(each) is not fault.statement
        for each in source.all(fault.scope, cst.Name)
        if each.value not in names or not isinstance(source.parent(each), cst.AssignTarget)
    )


def _tells_how_sure(source: Source) -> bool:
    """Whether a script may read its model's probabilities as such: it compares with numbers, or takes more than the
    likeliest class."""
    numbers = [number for each in source.all(source.module, cst.Comparison) for number in source.all(each, cst.Float)]
    return bool(numbers) or bool(source.calls(source.module, "max", "topk", "log", "multinomial", "predict_proba"))


def _model_without_softmax(source: Source) -> Iterator[cst.Module]:
    """The softmax that is a model's last layer, or what its forward returns."""
    for model in source.calls(source.module, "Sequential"):
        if len(model.args) > 1 and isinstance(last := model.args[-1].value, cst.Call) and called(last) == "Softmax":
            kept = [*model.args[:-2], model.args[-2].with_changes(comma=model.args[-1].comma)]
            yield source.exchanged({model: model.with_changes(args=kept)})
    for function in source.all(source.module, cst.FunctionDef):
        if function.name.value == "forward":
            for returned in source.all(function, cst.Return):
                value = _returned(source, function, returned)
                if isinstance(value, cst.Call) and value in _softmaxes(source, function):
                    yield source.replaced(value, source.code(_without_softmax(value)))


def _returned(source: Source, function: cst.FunctionDef, returned: cst.Return) -> cst.BaseExpression | None:
    """What a function returns: an expression, or what its name was given last, beside it and read nowhere between."""
    if not (name := dotted(returned.value)):
        return returned.value
    assigned = [each for each in source.all(function, cst.Assign) if name in targets(each)]
    if not assigned or not source.beside(assigned[-1], returned):
        return None
    last = source.last(assigned[-1])
    read = [each for each in source.all(function, cst.Name) if last < source.first(each) < source.first(returned)]
    return None if name in {each.value for each in read} else assigned[-1].value


@repairs("loss::of-another-batch")
def of_another_batch(fault: RepairTarget) -> Iterator[cst.Module]:
    """Give the labels of the loop's batch the name by which its body knows them."""
    source = fault.source
    for loop in source.enclosing(fault.statement, cst.For)[:1]:
        yield from rebound(source, loop)


# Labels that are no classes cannot be told to be other rows'.
@repairs("loss::targets-truncated", quiets=("rows::labels-of-other-rows",))
def targets_truncated(fault: RepairTarget) -> Iterator[cst.Module]:
    """Keep what is behind the point: make no integers of the targets."""
    source = fault.source
    for call in source.calls(source.module, "long", "int"):
        if isinstance(call.func, cst.Attribute) and not call.args:
            yield source.replaced(call, source.code(call.func.value))


@repairs("loss::constant")
def constant(fault: RepairTarget) -> Iterator[cst.Module]:
    """Take the binary cross-entropy of a single logit."""
    source = fault.source
    if fault.case != "one-class":
        return
    names = {"CrossEntropyLoss": "BCEWithLogitsLoss", "cross_entropy": "binary_cross_entropy_with_logits"}
    for call in source.calls(source.module, *names):
        if isinstance(call.func, cst.Attribute) and argument(call, "label_smoothing") is None:
            yield source.called_otherwise(call, names[called(call)])
