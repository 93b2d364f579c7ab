"""Optimizers: made once, over the parameters of the model that is trained."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import LOOPS, Source, argument, called, dotted, receiver, targets, without_argument


@repairs("optimizer::holds-another-model")
def holds_another_model(fault: RepairTarget) -> Iterator[cst.Module]:
    """Make it after the model that is trained."""
    source, statement = fault.source, fault.statement
    of = {dotted(receiver(call)).partition(".")[0] for call in source.calls(statement, "parameters")}
    of |= {name.value for name in source.all(statement, cst.Name)}
    for other in reversed(source.all(fault.scope, cst.Assign)):
        later = source.first(other) > source.last(statement)
        if later and of & set(targets(other)) and source.beside(other, statement):
            yield source.moved(statement, after=other)


@repairs("optimizer::made-again")
def made_again(fault: RepairTarget) -> Iterator[cst.Module]:
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


@repairs("optimizer::missing-parameters", quiets=("parameters::copy-shares-memory",))
def missing_parameters(fault: RepairTarget) -> Iterator[cst.Module]:
    """Give it the parameters of the whole model, or of the second one too."""
    source = fault.source
    yield from _second_model(fault)
    for call in source.calls(source.module, "parameters"):
        of = receiver(call)
        within = source.statement_of(call)
        if isinstance(of, cst.Attribute) and dotted(of) and dotted(of.value) != "self" and _makes_one(source, within):
            yield source.replaced(of, source.code(of.value))


@repairs("parameters::not-registered")
def not_registered(fault: RepairTarget) -> Iterator[cst.Module]:
    """Register the modules that a list keeps."""
    source = fault.source
    for assign in source.all(source.module, cst.Assign):
        value = assign.value
        if not targets(assign)[0].startswith("self.") or not isinstance(value, cst.List | cst.ListComp):
            continue
        module = next(
            (name for call in source.calls(value) if (name := dotted(call.func)).rpartition(".")[0].endswith("nn")), ""
        )
        if module:
            yield source.replaced(value, f"{module.rpartition('.')[0]}.ModuleList({source.code(value)})")


def _second_model(fault: RepairTarget) -> Iterator[cst.Module]:
    """Where one variable is a model of the class that is said, and the optimizer has all parameters of another one."""
    source, statement = fault.source, fault.statement
    of = fault.details.get("model")
    made = [targets(each)[0] for each in source.all(fault.scope, cst.Assign) if _class_made(each.value) == of]
    given = [each for each in source.calls(statement, "parameters") if isinstance(source.parent(each), cst.Arg)]
    if len(made) == len(given) == 1 and made[0] and dotted(receiver(given[0])).partition(".")[0] != made[0]:
        yield source.replaced(given[0], f"[*{source.code(given[0])}, *{made[0]}.parameters()]")


def _class_made(value: cst.BaseExpression) -> str:
    """Net of ``Net(3)`` and of ``Net(3).to(device)``."""
    while isinstance(value, cst.Call) and isinstance(inner := receiver(value), cst.Call):
        value = inner
    return called(value) if isinstance(value, cst.Call) else ""


def _makes_one(source: Source, statement: cst.CSTNode) -> bool:
    """Whether a statement makes one optimizer, from the parameters of one module."""
    return isinstance(statement, cst.Assign) and len(source.calls(statement, "parameters")) == 1


@repairs("optimizer::maximizes")
def maximizes(fault: RepairTarget) -> Iterator[cst.Module]:
    """Leave ``maximize`` out."""
    source = fault.source
    for call in source.calls(source.module):
        if argument(call, "maximize") is not None:
            yield source.exchanged({call: without_argument(call, "maximize")})
