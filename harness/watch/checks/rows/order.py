from __future__ import annotations

from typing import Any

from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.rows.observations.carried_states import ShuffledRowsGiven
from harness.watch.checks.rows.observations.orders import BatchesAgain, EpochCompared, PermutationDrawn
from harness.watch.checks.rows.observations.seeds import SeededAgain
from harness.watch.checks.rows.observations.shuffles import RowsShuffled
from harness.watch.facts.samplers import batch_sampler, is_shuffled_stream, row_sampler

MIN_DRAWS = 3
"""Draws in a row, of two of which chance would make two permutations. By reasoning: eight rows have 40320."""


class DrawnAlike(Check):
    """The same permutation is drawn in each epoch, because the generator is seeded again.

    ## Why is this a bug?
    With a seed before each draw, the rows always come in the same order, and if only some of them are drawn, the rest
    are never seen.

    ## What to do
    Seed once, before training, or give `torch.randperm` its own generator, which continues from epoch to epoch.

    ## When it is right
    The same order for another training, with an optimizer of its own, is not reported: folds and repetitions are meant
    to be alike.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/randomness.html
    """

    new_since = "0.3.0"
    explains = ("rows::random-state-set-back",)

    def judge(self, fact: PermutationDrawn) -> Verdict:
        if fact.times != MIN_DRAWS:
            return HELD
        return Found(
            expected="a new permutation in each epoch",
            observed=f"the same permutation of {fact.rows} rows {fact.times} times in a row: the generator is seeded "
            "again before each draw",
        )


class RandomStateSetBack(Check):
    """The random numbers of a training begin again and again, because torch is seeded with a seed that it had before.

    ## Why is this a bug?
    `torch.manual_seed` sets back everything that draws from torch: dropout, noise, augmentation and the order of rows.
    In a dataset's `__getitem__`, or in an evaluation that is to be repeatable, it also decides what the next update of
    the training draws. The same dropout masks and the same noise come again, so they no longer average out, and the
    model learns to live with these few.

    ## What to do
    Give what must be repeatable a generator of its own: `torch.Generator().manual_seed(seed)`, passed as `generator=`.
    Or put the state back afterwards: `with torch.random.fork_rng(): torch.manual_seed(seed)`.

    ## When it is right
    Seeds that are put back before the training goes on, that differ each time, or that are given before another
    optimizer is made (folds and repetitions are meant to be alike) are not reported. Nor is a training that draws no
    random numbers.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/randomness.html
    """

    new_since = "0.4.0"

    def judge(self, fact: SeededAgain) -> Verdict:
        if fact.before is None or fact.times + 1 < MIN_DRAWS:
            return HELD
        return Found(
            expected="random numbers that go on from update to update",
            observed=f"torch is seeded with {fact.seed} before update {fact.at.update}, as it was before update "
            f"{fact.before}, and the training draws from there",
            hint="Use a generator of its own for what must be repeatable (torch.Generator().manual_seed(seed)), or put "
            "the state back: with torch.random.fork_rng(): ...",
        )


IN_VAIN = (
    "Keep what was drawn in a list, or as the keys of a dict: a set of small whole numbers is gone through in their "
    "order, whatever order they were put in."
)
"""What to do where a permutation is drawn and lost."""


class SameOrderEachEpoch(Check):
    """Each epoch goes through the training rows in the same order.

    ## Why is this a bug?
    With one fixed order, the same rows share a batch in every epoch, and the last batches of an epoch always have the
    last word. The gradients' errors then repeat instead of averaging out, and rows that are sorted by class or by
    length make it worse. The only sign is a slightly worse model.

    ## What to do
    Give the training DataLoader shuffle=True.

    With a `DistributedSampler` or a shuffled stream of `datasets`, call `set_epoch(epoch)` at the beginning of each
    epoch; do not reseed whatever draws the order in each epoch.

    ## When it is right
    Samplers of your own (by length, by class, from easy to hard) may use any order, and are reported only if they draw
    another permutation of the rows in each epoch and give them in the same order all the same. Neither are
    datasets that grow from epoch to epoch, or that draw or change their rows at random themselves. Another training,
    with an optimizer of its own, may begin with the same seed. A model that gets its state from the previous batch must
    have the batches in order. Batches in a list that is shuffled, and a single batch that is trained on again and again
    to see whether a model can learn it at all, are not reported either.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
    - https://github.com/huggingface/accelerate/issues/2627
    """

    def judge(self, fact: EpochCompared) -> Verdict:
        if not fact.same_order:
            return HELD
        return Found(
            expected="a new order in each epoch",
            observed="the rows come in the same order as in the previous epoch "
            f"({_sampler(fact)})" + (", though the sampler drew another permutation" if fact.in_vain else ""),
            hint=IN_VAIN if fact.in_vain else _hint(fact.loader),
            update=fact.at.updates_made,
            details={"sampler": _sampler(fact)},
            may_be_meant=fact.in_vain,
        )

    def judge_batches(self, fact: BatchesAgain) -> Verdict:
        return Found(
            expected="a new order in each epoch",
            observed=f"the script trains on the {fact.batches} batches of one pass again and again, in the same order",
            hint="Iterate over the DataLoader itself in each epoch: itertools.cycle and lists keep the batches of the "
            "first epoch.",
            update=fact.update,
        )


def _sampler(fact: EpochCompared) -> str:
    """The class of what draws the rows."""
    batches = batch_sampler(fact.loader)
    own = fact.in_vain and type(batches) is not BatchSampler
    return type(batches if own else row_sampler(fact.loader)).__name__


class ShuffledApart(Check):
    """Inputs and labels are shuffled separately, so rows are paired with the labels of other rows.

    ## Why is this a bug?
    `x[torch.randperm(n)]` and `y[torch.randperm(n)]` put what belongs together into two different orders. The model is
    taught noise: its loss falls to that of guessing and stays there.

    ## What to do
    Draw one permutation and use it for both: `order = torch.randperm(n); x, y = x[order], y[order]`.

    ## When it is right
    The check reads the script here, around the line of an update: it looks for two neighbouring statements that shuffle
    something named as labels, and something else, by one permutation each. Labels that are shuffled alone, to see what
    a model makes of noise, are not reported, nor are statements with a seed in between.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.randperm.html
    """

    new_since = "0.3.0"

    def judge(self, fact: RowsShuffled) -> Verdict:
        if fact.apart is None:
            return HELD
        observed = f"{fact.apart}: rows and labels no longer belong together"
        return Found("the same permutation for inputs and labels", observed)


class StateOfOtherRows(Check):
    """The hidden state of one batch is passed to the next, although the rows are shuffled.

    ## Why is this a bug?
    The hidden state of a recurrent model says what came before in a sequence. If a state is carried from batch to
    batch, row 3 of a batch continues from the state that row 3 of the previous batch ended with; in shuffled batches
    that is another sequence, so the model gets noise, and different noise in training than in use.

    ## What to do
    Start each batch without a state: call model(inputs) instead of model(inputs, state), or set state = None at the top
    of the loop.

    To carry it, give the batches in the order of the sequences: `shuffle=False`, with row k of each batch continuing
    row k of the one before.

    ## When it is right
    Parts of one batch that are processed one after the other (truncated backpropagation), batches that come in order,
    and samplers of your own are not reported. Neither is a state in which no part is about one row alone, such as a
    memory that all rows share. The check does not see a state that the model keeps for itself, as an attribute.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html (h_0 and c_0 default to zeros)
    """

    severity = "warning"

    def judge(self, fact: ShuffledRowsGiven) -> Verdict:
        if fact.state is None:
            return HELD
        return Found(
            expected="batches that start without a state, or that continue the previous batch",
            observed=f"the model gets a state of shape {fact.state}, its own output for the previous batch, but the "
            "loader shuffles: those were other rows",
        )


def _hint(loader: Any) -> str | None:
    sampler = row_sampler(loader)
    if isinstance(sampler, DistributedSampler):
        return "Call sampler.set_epoch(epoch) at the start of each epoch."
    if is_shuffled_stream(loader.dataset):
        return "Call dataset.set_epoch(epoch) at the start of each epoch."
    if isinstance(sampler, RandomSampler):
        return "Don't seed the generator again in each epoch."
    return None
