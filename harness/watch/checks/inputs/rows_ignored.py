from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Forward, LossCall


class RowsIgnored(Check):
    """The rows of one class are left out of the loss.

    ## Why is this a bug?
    `ignore_index` names a label whose rows do not count. The index of a padding token, usually 0, is also that of the
    first class if each row has one label: the model is never taught that class, and the mean is over the others.

    ## What to do
    Leave ignore_index out where each row has one label; right if the class stands for rows without a label.

    ## When it is right
    Ignore the warning if the class means "unknown" or "void". Labels of tokens and of pixels, one of which is usually
    ignored, are not reported, nor is a label that is not a class, such as -100.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    severity = "warning"
    needs = "labels of classes"
    in_windows = "first"
    explains = ("loss::not-finite", "loss::constant", "gradients::cut-off")

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not self.monitor.is_sampled() or not event.forwards:
            return
        for call in event.losses:
            if call.function == "cross_entropy" and _is_of_rows(call, event.forwards[-1]):
                self._look_at(call)

    def _look_at(self, call: LossCall) -> None:
        self.looked = True
        ignored = call.options.get("ignore_index", -100)
        rows = int((call.target == ignored).sum())
        if rows and 0 <= ignored < call.input.shape[1]:
            self.found(
                expected="every class in the loss",
                observed=f"ignore_index={ignored} leaves the rows of class {ignored} out: {rows} of {len(call.target)}",
                where=call.where,
                update=self.monitor.update,
            )


def _is_of_rows(call: LossCall, forward: Forward) -> bool:
    """Whether each row that the model was given has one label, and not each of its tokens."""
    given = [len(tensor) for tensor in forward.tensors.values() if tensor.dim() > 0]
    if call.target.dim() != 1 or call.target.is_floating_point() or call.input.dim() != 2:
        return False
    return bool(given) and all(rows == len(call.target) for rows in given)
