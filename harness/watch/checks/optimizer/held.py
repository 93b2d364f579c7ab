from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.optimizer.observations.optimizer_steps import HeldByAll
from harness.watch.facts.ascent import LossFollowed
from harness.watch.facts.held_tensors import names
from harness.watch.facts.parameters import ModelHeld, TensorsHeld


class HoldsAnotherModel(Check):
    """The optimizer holds parameters that do not belong to the model in use.

    ## Why is this a bug?
    An optimizer keeps the tensors that it was given. If the model is loaded again, copied or given a new head
    afterwards, the forward pass uses other tensors: they get gradients, and no step ever changes them.

    ## What to do
    Make the optimizer from model.parameters() after the model is final (after from_pretrained, resizing, a new head, or
    conversion to another class).

    ## When it is right
    An optimizer over several models, or over parts that are not called (an autoencoder's decoder when only the encoder
    is used), is not reported as long as some of what it holds gets gradients, and nothing that gets gradients is left
    out. Neither are embeddings that were resized after the optimizer was made.
    """

    explains = ("optimizer::missing-parameters",)

    def judge(self, fact: TensorsHeld) -> Verdict:
        if not fact.of_another_model:
            return HELD
        if fact.not_held:
            lost = f"{fact.foreign} tensors that the model no longer has"
            at = f" before {fact.replaced_at}" if fact.replaced_at else " earlier"
            return Found(
                expected="an optimizer with the parameters of the model in use",
                observed=f"{names(fact.not_held)} get gradients and are in no optimizer. The optimizer was made{at}, "
                f"and holds {lost}",
                where=fact.made,
                update=1,
            )
        return Found(
            expected="an optimizer with the parameters of the model in use",
            observed=f"{fact.foreign} of the optimizer's {fact.tensors} tensors belong to no model that was called, "
            "and never get a gradient",
            where=fact.made,
            update=1,
        )


class HoldsOnlyFrozen(Check):
    """All parameters in the optimizer are frozen, so its steps change nothing.

    ## Why is this a bug?
    Nothing that the optimizer holds gets a gradient, and what is not frozen has no optimizer. Usually the wrong half
    of the model was frozen, or the wrong half was given to the optimizer; the model stays what it was.

    ## What to do
    Give the optimizer the parameters that you want to train, after freezing the others.

    ## When it is right
    An optimizer of a part that is frozen is reported only if no optimizer has anything to change in the whole training:
    parts may be unfrozen later, one after the other.

    ## References
    - https://discuss.pytorch.org/t/84911
    """

    explains = ("gradients::lost", "optimizer::missing-parameters")

    def judge(self, fact: HeldByAll) -> Verdict:
        if not fact.only_frozen:
            return HELD
        return Found(
            expected="trainable parameters in the optimizer",
            observed="all parameters in the optimizer are frozen (requires_grad is False)",
            update=fact.update,
        )


class Maximizes(Check):
    """The optimizer increases the loss, because it was made with `maximize=True`.

    ## Why is this a bug?
    With `maximize=True` an optimizer climbs the gradient, for objectives that should grow. With a loss, each update
    makes the model worse at its task, quickly and without an error.

    ## What to do
    Remove maximize=True: it is for objectives that should grow.

    ## When it is right
    The option is for objectives that are not a loss function's value, such as a reward or a likelihood, and for the
    negative of a loss; these are not reported. If other updates do go down, those that climb may belong to an adversary
    or a Lagrange multiplier; an optimizer that searches for a model's input, such as an adversarial image, may climb
    too.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
    """

    explains = ("gradients::accumulation-unscaled",)

    def judge(self, fact: LossFollowed) -> Verdict:
        if fact.climbs != "by the optimizer":
            return HELD
        return Found(
            expected="maximize=False, because backward() is called on a loss",
            observed="maximize=True, so the optimizer climbs the loss",
            update=fact.update,
        )


class MissingParameters(Check):
    """Parameters get gradients, but no optimizer holds them.

    ## Why is this a bug?
    They are meant to be trained, but stay as they were initialised. A head that the optimizer does not know stays
    random to the end: what comes before it has to learn around it.

    ## What to do
    Give the optimizer model.parameters(), or freeze what you don't want to train with requires_grad_(False). Add
    parameters that you unfreeze later with optimizer.add_param_group.

    ## When it is right
    Training the head alone while the backbone gets gradients that nobody uses is a note, not a finding. It is also a
    note if only vectors, such as all biases, are trained in addition to the head, or if the script searches for a
    model's input (an adversarial image, a latent code) and trains nothing in the model. Parameters that come to an
    optimizer later, through `add_param_group` or with another optimizer, are not reported either. Neither are those
    that the script updates by hand, or with a class that is not a torch optimizer.
    """

    explains = ("schedule::lr-zero",)

    def judge(self, fact: ModelHeld) -> Verdict:
        if not fact.forgotten:
            return HELD
        return Found(
            expected="every trainable parameter of the model in an optimizer",
            observed=f"{names(fact.forgotten)} of {fact.model} get gradients, but are in no optimizer that makes steps",
            update=1,
            details={"model": fact.model},
        )
