"""Saved: the best state, with all that a training goes on with."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import Source, called, dotted, is_true, receiver

FLIPPED: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.LessThan: cst.GreaterThan,
    cst.GreaterThan: cst.LessThan,
    cst.LessThanEqual: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.LessThanEqual,
}


@repairs("saved::best-is-worst")
def best_is_worst(fault: RepairTarget) -> Iterator[cst.Module]:
    """Turn the comparison around under which a state is kept."""
    source = fault.source
    for condition in source.all(source.module, cst.If):
        test = condition.test
        if "best" in source.code(test) and isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            operator = test.comparisons[0].operator
            if flipped := FLIPPED.get(type(operator)):
                yield source.exchanged({operator: flipped()})
    for call in source.calls(source.module):
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == "greater_is_better":
                yield source.replaced(arg.value, "False" if is_true(arg) else "True")


@repairs("saved::resumed-incompletely", quiets=("schedule::warmup-never-ends",))
def resumed_incompletely(fault: RepairTarget) -> Iterator[cst.Module]:
    """Load what was saved beside what is loaded: the optimizer's state, or the schedule's."""
    source = fault.source
    saved = _saved(source)
    loads = [each for each in source.calls(source.module, "load_state_dict") if _key(each)]
    loaded = {dotted(receiver(each)) for each in loads}
    for key, name in saved.items():
        if name not in loaded:
            for last in loads[-1:]:
                subscript = last.args[0].value
                assert isinstance(subscript, cst.Subscript)
                state = source.code(subscript.value)
                yield source.inserted(f"{name}.load_state_dict({state}[{key}])", after=source.statement_of(last))


def _saved(source: Source) -> dict[str, str]:
    """Key of a dictionary to the variable whose state is under it."""
    return {
        source.code(each.key): dotted(receiver(each.value))
        for each in source.all(source.module, cst.DictElement)
        if isinstance(each.value, cst.Call) and called(each.value) == "state_dict"
    }


def _key(load: cst.Call) -> bool:
    """Whether a part of a dictionary is loaded."""
    return bool(load.args) and isinstance(load.args[0].value, cst.Subscript)
