"""Models: the same answer for a row each time, whatever stands beside it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from harness.repairs.repair import RepairTarget, repairs
from harness.repairs.source import argument, dotted, receiver, with_argument

BATCH_LATER = (
    "GRU",
    "LSTM",
    "RNN",
    "MultiheadAttention",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
    "Transformer",
)
ACROSS_ROWS = ("softmax", "log_softmax", "normalize", "layer_norm", "Softmax")


@repairs("model::nondeterministic-eval", quiets=("model::reference-is-the-policy",))
def nondeterministic_eval(fault: RepairTarget) -> Iterator[cst.Module]:
    """Tell dropout whether the module is in training."""
    source = fault.source
    for call in source.calls(source.module, "dropout", "dropout1d", "dropout2d", "alpha_dropout"):
        functional = dotted(receiver(call)).rpartition(".")[2] in ("F", "functional")
        if functional and argument(call, "training") is None and _in_a_method(fault, call):
            yield source.exchanged({call: with_argument(call, "training", "self.training")})
    for call in source.calls(source.module, "scaled_dot_product_attention"):
        rate = argument(call, "dropout_p")
        if rate is not None and not isinstance(rate.value, cst.IfExp) and _in_a_method(fault, call):
            yield source.replaced(rate.value, f"{source.code(rate.value)} if self.training else 0.0")


def _in_a_method(fault: RepairTarget, call: cst.Call) -> bool:
    scope = fault.source.scope(call)
    return isinstance(scope, cst.FunctionDef) and any(each.name.value == "self" for each in scope.params.params)


@repairs("model::output-depends-on-batch")
def output_depends_on_batch(fault: RepairTarget) -> Iterator[cst.Module]:
    """Say that the batch comes first; normalise over the features instead of over the rows."""
    source = fault.source
    for call in source.calls(source.module, *BATCH_LATER):
        if argument(call, "batch_first") is None:
            yield source.exchanged({call: with_argument(call, "batch_first", "True")})
    for call in source.calls(source.module, *ACROSS_ROWS):
        dim = argument(call, "dim")
        if dim is not None and source.code(dim.value) == "0":
            yield source.replaced(dim.value, "-1")
