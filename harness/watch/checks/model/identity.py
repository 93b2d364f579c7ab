from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.model.observations.references import ReferenceAsked, ReferenceGiven
from harness.watch.checks.model.observations.stacks import StacksCalled
from harness.watch.events import Forward
from harness.watch.facts.held_tensors import names
from harness.watch.facts.trained_models import CalledAfterTraining, CheckpointEvaluated

MIN_BACKWARD_PASSES = 5
"""Backward passes in a row with that loss. By reasoning: a preference loss begins with it, and leaves it at once."""


class EvaluatedUntrained(Check):
    """The model evaluated after training does not have the trained weights.

    ## Why is this a bug?
    If you evaluate the checkpoint that the training began with, or a new model into which nothing was loaded, the
    result says nothing about the training. The reported numbers are those of another model.

    ## What to do
    Evaluate the model that was trained, or load the weights saved after training into the model that you evaluate.

    ## When it is right
    A comparison with the checkpoint before the training, or with an untrained model alongside the trained one, is not
    reported.
    """

    needs = "model that is called after the training"
    explains = ("saved::not-what-was-evaluated", "weights::left-random")

    def judge(self, fact: CheckpointEvaluated) -> Verdict:
        return Found(
            expected="the trained weights in the evaluation after training",
            observed="the evaluated model has the weights of the checkpoint that the training started from",
            update=fact.at.updates_made,
            hint="Load the weights that were saved after training.",
        )

    def judge_calls(self, fact: CalledAfterTraining) -> Verdict:
        if fact.untrained is None:
            return HELD
        return Found(
            expected="the trained weights in the evaluation after training",
            observed=f"another model of the same class is called, which was never trained: {fact.untrained}",
            update=fact.at.updates_made,
        )


class HooksSkipped(Check):
    """`forward()` of a module with hooks is called directly, so the hooks do not run.

    ## Why is this a bug?
    `model(inputs)` calls the hooks and `forward`; `model.forward(inputs)` calls `forward` alone. What a hook does then
    happens in some calls and not in others: inputs are not normalised, a weight that `prune` or an older
    `spectral_norm` computes in a hook stays as it was, activations are not collected.

    ## What to do
    Call model(inputs) instead of model.forward(inputs).

    ## When it is right
    When hooks only observe, such as those that measure or log, and are not wanted in these calls. A module without
    hooks is not reported, nor are hooks that torch calls for all modules.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook
    """

    new_since = "0.3.0"
    needs = "call of a model's forward method"

    def judge(self, call: Forward) -> Verdict:
        if not call.unhooked:
            return NOTHING_TO_JUDGE
        model = call.model
        hooks = len(model._forward_hooks) + len(model._forward_pre_hooks)
        if not hooks:
            return HELD
        return Found(
            expected=f"a call of the {type(model).__name__} itself, which runs its hooks",
            observed=f"a call of its forward method, which skips {hooks} hook{'s' * (hooks != 1)}",
            update=call.at.updates_made,
        )


class LayersShared(Check):
    """Several layers of a stack are the same module, so they share their weights.

    ## Why is this a bug?
    `nn.ModuleList([layer] * 4)` and `for _ in range(4): layers.append(layer)` put one module into the list four times.
    The model is as deep as it looks, but every layer has the same weights: it has a quarter of the parameters that its
    code suggests, learns less, and nothing says so. `parameters()` yields each tensor once; a state dict lists it under
    each of its names.

    ## What to do
    Make a new module for each layer, `nn.ModuleList([Layer(width) for _ in range(4)])`, or copy one:
    `nn.ModuleList([copy.deepcopy(layer) for _ in range(4)])`.

    ## When it is right
    Weights that are shared on purpose between the layers of a stack, as in a Universal Transformer or in ALBERT. In
    that case, call the module in a loop, `for _ in range(4): x = self.layer(x)`, which says so and is not reported.
    Neither are a head that is listed once for each layer whose output it gets, and towers that share their weights:
    none of their calls works on the output of another, or other layers are in between. Activations and normalisations,
    which have no matrix, are not reported either.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html (its layers are copies)
    - https://arxiv.org/abs/1807.03819
    - https://arxiv.org/abs/1909.11942
    """

    severity = "warning"

    def judge(self, fact: StacksCalled) -> Verdict:
        if not fact.places:
            return HELD
        return Found(
            expected="a separate module for each layer",
            observed=f"layers {names(fact.places)} of {fact.stack} are the same "
            f"{fact.layer}, and each of its calls gets the output of the previous one",
        )


class ReferenceIsAnother(Check):
    """The reference model of a preference trainer has different weights from the policy before training.

    ## Why is this a bug?
    DPO, KTO and their like measure how far the policy has moved from its reference. A reference with other weights (the
    base checkpoint instead of the model that was just fine-tuned) makes that distance large before the first update:
    the rewards do not begin at 0, and the loss first pulls the policy back to what it was before its fine-tuning. The
    same happens if `ref_model` is left out and the trainer loads the reference from the path that the policy once came
    from.

    ## What to do
    Give the trainer a copy of the model that it trains, `ref_model=copy.deepcopy(model)`, or save the fine-tuned model
    and load the policy from there.

    ## When it is right
    When another model is the reference on purpose. A model with an adapter is compared with itself without the adapter,
    and is not checked.

    ## References
    - https://huggingface.co/docs/trl/dpo_trainer
    - https://github.com/huggingface/trl/issues/1340
    """

    severity = "warning"
    new_since = "0.2.0"

    def judge(self, fact: ReferenceGiven) -> Verdict:
        if not fact.others:
            return HELD
        return Found(
            expected="a reference model with the weights that the policy starts from",
            observed=f"before the first update, {len(fact.others)} of the {fact.tensors} tensors "
            f"{'differs' if len(fact.others) == 1 else 'differ'} between policy and reference, such as "
            f"{fact.others[0]}",
        )


class ReferenceIsThePolicy(Check):
    """The reference model of a preference loss is the model that is being trained.

    ## Why is this a bug?
    DPO and its like compare how much more likely the policy finds the chosen answer than the reference does, and
    likewise the rejected one. If `reference = policy` names the same object twice, or both share their weights, both
    margins are 0 in every update: the loss stays at ln 2 = 0.693. The gradients that remain train the model with
    nothing to hold it back.

    ## What to do
    Copy the model before training: `reference = copy.deepcopy(policy).eval().requires_grad_(False)`.

    ## When it is right
    A two-class loss that is ln 2 in the first updates, or that moves at all, is not reported. Nothing is reported
    unless each update has a forward pass without gradients. A model with adapters is compared with itself without them,
    and is not checked.

    ## References
    - https://huggingface.co/docs/trl/dpo_trainer
    """

    explains = ("loss::constant",)

    def judge(self, fact: ReferenceAsked) -> Verdict:
        if fact.in_a_row < MIN_BACKWARD_PASSES or not fact.at.updates_made:
            return HELD
        return Found(
            expected="a reference model with its own weights",
            observed=f"the loss was ln 2 = {fact.loss:.4f} in {MIN_BACKWARD_PASSES} backward passes in a row, and the "
            "reference's forward passes go through the weights in training: the reference is the policy itself",
        )
