"""Optimizers: made once, over the parameters of the model that is trained."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.repair import Fault, repairs
from harness.repairs.source import LOOPS, Source, dotted, receiver, targets


@repairs("optimizer::holds-another-model")
def holds_another_model(fault: Fault) -> Iterator[cst.Module]:
    """Make it after the model that is trained."""
    source, statement = fault.source, fault.statement
    of = {dotted(receiver(call)).partition(".")[0] for call in source.calls(statement, "parameters")}
    of |= {name.value for name in source.all(statement, cst.Name)}
    for other in reversed(source.all(fault.scope, cst.Assign)):
        later = source.first(other) > source.last(statement)
        if later and of & set(targets(other)) and source.unit(other)[1] is source.unit(statement)[1]:
            yield source.moved(statement, after=other)


@repairs("optimizer::made-again")
def made_again(fault: Fault) -> Iterator[cst.Module]:
    """Keep the one that was made before the loop, or make it there."""
    source, statement = fault.source, fault.statement
    loops = source.enclosing(statement, LOOPS)
    if not loops:
        return
    names = set(targets(statement))
    earlier = [
        each
        for each in source.all(fault.scope, cst.Assign)
        if names & set(targets(each)) and source.last(each) < source.first(loops[-1])
    ]
    if earlier:
        yield source.removed(statement)
    else:
        yield source.moved(statement, before=loops[-1])


@repairs("optimizer::missing-parameters")
def missing_parameters(fault: Fault) -> Iterator[cst.Module]:
    """Give it the parameters of the whole model; register the modules that a list keeps."""
    source = fault.source
    for call in source.calls(source.module, "parameters"):
        of = receiver(call)
        within = source.statement_of(call)
        if isinstance(of, cst.Attribute) and dotted(of) and dotted(of.value) != "self" and _makes_one(source, within):
            yield source.replaced(of, source.code(of.value))
    for assign in source.all(source.module, cst.Assign):
        value = assign.value
        if not targets(assign)[0].startswith("self.") or not isinstance(value, cst.List | cst.ListComp):
            continue
        module = next(
            (name for call in source.calls(value) if (name := dotted(call.func)).rpartition(".")[0].endswith("nn")), ""
        )
        if module:
            yield source.replaced(value, f"{module.rpartition('.')[0]}.ModuleList({source.code(value)})")


def _makes_one(source: Source, statement: cst.CSTNode) -> bool:
    """Whether a statement makes one optimizer, from the parameters of one module."""
    return isinstance(statement, cst.Assign) and len(source.calls(statement, "parameters")) == 1
