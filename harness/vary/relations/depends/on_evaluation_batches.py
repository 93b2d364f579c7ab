from __future__ import annotations

from harness.vary.change import other_size
from harness.vary.differences import Run
from harness.vary.relation import Outcome, Relation, Tried, Way, lacks


class OnEvaluationBatches(Relation):
    """With batches of a different size, an evaluation of the same model on the same rows reports a different number.

    ## Why is this a bug?
    The batch size of an evaluation should only affect its speed. If it affects the reported number, that number does
    not describe the rows. It may come from the last batch alone, be a mean of batches that do not count equally, or
    come from a model whose answer for a row depends on the other rows of its batch.

    ## What to do
    Add up hits (or losses times rows) over the batches and divide once, by the number of rows. Call `model.eval()`, and
    take softmax and argmax over the classes.

    ## When it is right
    Differences below half a standard error of the number are not reported: other rows would change it far more. A
    contrastive loss, or any loss whose value for a row depends on the other rows of its batch, necessarily depends on
    the batch size.

    ## References
    - https://github.com/huggingface/transformers/issues/26498
    """

    new_since = "0.4.0"
    kind = "evaluation batches"
    tries = "evaluate in batches of a different size"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        if not tried.evaluated:
            return "no DataLoader is used for evaluations alone"
        loaders = [each for each in tried.evaluated if each.size is not None and each.batches > 1]
        return (
            cls.of_loaders(loaders) if loaders else "each evaluation is one batch, or the script makes its own batches"
        )

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        if other.account.otherwise:
            return lacks("the model gives different outputs each time (depends::on-chance)")
        changed = next(each for each in tried.evaluated if each.size is not None and each.batches > 1)
        size = changed.size or 1
        return tried.same_numbers(other, f"with batches of {other_size(size)} rows as with {size}")
