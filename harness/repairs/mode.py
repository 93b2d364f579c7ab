"""Modes: train and eval, with a graph and without."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.loop import outermost_loop_that_only_evaluates, trains
from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import LOOPS, Source, dotted, looks_like

NO_MODEL = (
    r"^(torch|F|nn|np|math|range|enumerate|print|len|list|zip|sum|tqdm)$|criterion|loss|metric|loader|accuracy|token"
)


@repairs("mode::evaluation-in-train-mode")
def evaluation_in_train_mode(fault: RepairTarget) -> Iterator[cst.Module]:
    """Call eval() before the evaluation's loop, and train() after it where the training goes on."""
    source, statement = fault.source, fault.statement
    loop = outermost_loop_that_only_evaluates(source, statement) or statement
    for model in _called_models(source, statement):
        yield source.inserted(f"{model}.eval()", before=loop)
        yield source.surrounded(loop, f"{model}.eval()", f"{model}.train()")


@repairs("mode::training-in-eval-mode", quiets=("model::reference-is-the-policy",))
def training_in_eval_mode(fault: RepairTarget) -> Iterator[cst.Module]:
    """Call train() before the loop over the batches, or before each forward pass where there is no other loop."""
    if fault.case == "updates-in-validation":
        return  # which of the two is meant, the author knows
    source, statement = fault.source, fault.statement
    loops = source.enclosing(statement, LOOPS)
    for model in _called_models(source, statement):
        if loops:
            yield source.inserted(f"{model}.train()", before=loops[0])
        yield source.inserted(f"{model}.train()", before=statement)


@repairs("mode::evaluation-with-graph")
def evaluation_with_graph(fault: RepairTarget) -> Iterator[cst.Module]:
    """Decorate the function that evaluates, or put the loop or the call under no_grad()."""
    source, statement = fault.source, fault.statement
    if not _imports_torch(source):
        return
    scope = fault.scope
    if isinstance(scope, cst.FunctionDef) and not trains(source, scope) and not _is_called_in_training(scope):
        decorator = cst.Decorator(source.expression("torch.no_grad()"))
        yield source.exchanged({scope: scope.with_changes(decorators=[*scope.decorators, decorator])})
    unit, _ = source.unit(statement)
    if isinstance(unit, cst.SimpleStatementLine):
        yield source.edited({unit: [_under_no_grad]})
    loop = outermost_loop_that_only_evaluates(source, statement)
    if loop is not None:
        yield source.edited({loop: [_under_no_grad]})


def _is_called_in_training(scope: cst.FunctionDef) -> bool:
    """Whether it is a module's forward, which the training calls too."""
    return scope.name.value in ("forward", "__call__", "training_step")


def _under_no_grad(node: cst.BaseStatement) -> cst.With:
    item = cst.WithItem(cst.parse_expression("torch.no_grad()"))
    lines = node.leading_lines  # type: ignore[attr-defined]
    return cst.With([item], cst.IndentedBlock([node.with_changes(leading_lines=[])]), leading_lines=lines)


def _imports_torch(source: Source) -> bool:
    return any(
        alias.evaluated_name == "torch" and alias.asname is None
        for each in source.all(source.module, cst.Import)
        for alias in each.names
    )


def _called_models(source: Source, statement: cst.CSTNode) -> list[str]:
    """Variables that are called in a statement as a model is."""
    names = [dotted(call.func) for call in source.calls(statement)]
    plain = [name for name in names if name and ("." not in name or name.startswith("self."))]
    return list(dict.fromkeys(name for name in plain if not looks_like(name, NO_MODEL)))
