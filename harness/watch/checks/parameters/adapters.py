from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.facts.adapters import AdaptedWeights, AdapterPattern, AdaptersActive, AdapterTargets, names

MODULES_SHOWN = 6
"""Names of modules that are said."""

TARGETS_SHOWN = 8
"""Names of targets that are said."""


class AdapterFrozen(Check):
    """The adapter in the optimizer is frozen during the whole training.

    ## Why is this a bug?
    `PeftModel.from_pretrained` freezes what it loads, for use and not for training. An optimizer silently accepts
    frozen tensors and leaves them unchanged: the adapter is saved as it was loaded, and only other parts, such as a new
    head, are trained.

    ## What to do
    Load the adapter with `PeftModel.from_pretrained(..., is_trainable=True)`.

    ## When it is right
    A frozen adapter that the optimizer does not hold is not reported: it is there to be used. Neither is one that gets
    gradients in any pass of the training.

    ## References
    - https://huggingface.co/docs/peft/package_reference/peft_model#peft.PeftModel.from_pretrained
    """

    new_since = "0.3.0"
    needs = "adapter that an optimizer holds"

    def judge(self, fact: AdaptersActive) -> Verdict:
        if not fact.held:
            return NOTHING_TO_JUDGE
        if not fact.frozen:
            return HELD
        return Found(
            expected="gradients for the adapter in the optimizer",
            observed=f"the adapter {names(fact.frozen)} is frozen in all training passes, so it stays as it was loaded",
        )


class AdapterMissesWeights(Check):
    """An adapter covers only some of the weights with the names of its targets.

    ## Why is this a bug?
    Models with experts hold the weights of all experts of a layer in one parameter with three dimensions, which is no
    module. `target_modules=["down_proj"]` then adapts the shared experts or the dense layers alone, and most of the
    model stays frozen; if PEFT takes the names for those of fused weights, it adapts only the experts, and the dense
    layers with the same names stay unchanged. In both cases it is silent.

    ## What to do
    Name fused weights in `target_parameters` and modules in `target_modules`, each with the name of the module around
    it (`"mlp.experts.down_proj"`, `"shared_expert.down_proj"`), and print the names of all parameters with gradients.

    ## When it is right
    Adapting only some of them on purpose. Names with a dot, patterns, `layers_to_transform` and `exclude_modules` state
    where, and are not checked.

    ## References
    - https://huggingface.co/docs/peft/developer_guides/lora
    - https://github.com/huggingface/peft/issues/3009
    """

    severity = "warning"
    new_since = "0.3.0"

    def judge(self, fact: AdaptedWeights) -> Verdict:
        if not fact.missed:
            return HELD
        return Found(
            expected="an adapter for every weight with a target's name",
            observed=f"{len(fact.adapted)} have an adapter ({', '.join(fact.adapted[:MODULES_SHOWN])}), and "
            f"{len(fact.missed)} have none: {', '.join(fact.missed[:MODULES_SHOWN])}",
        )


class AdapterSkipsLayers(Check):
    """The pattern in an adapter's `target_modules` matches some blocks of the model and skips others like them.

    ## Why is this a bug?
    PEFT adapts what a pattern matches and is silent about the rest. `layers\\.[0-9]\\.` looks as if it matched every
    layer, but ends at the tenth. The blocks that are left out stay as the base has them: the adapter trains, and learns
    less than it could.

    ## What to do
    Name the modules without block numbers (`target_modules=["q_proj", "v_proj"]`), or fix the pattern. If you only want
    some blocks, use `layers_to_transform`.

    ## When it is right
    Adapting a few blocks on purpose. The last ones alone, and those that `layers_to_transform` or `exclude_modules`
    names, are not reported.

    ## References
    - https://huggingface.co/docs/peft/developer_guides/lora
    - https://huggingface.co/docs/peft/package_reference/lora#peft.LoraConfig
    """

    new_since = "0.3.0"

    def judge(self, fact: AdapterPattern) -> Verdict:
        if not fact.skipped:
            return HELD
        return Found(
            expected="adapters in all blocks that are alike",
            observed=f"the pattern in target_modules skips {len(fact.skipped)} "
            f"module{'s' * (len(fact.skipped) != 1)} named like the {fact.adapted} adapted ones except for the "
            f"numbers: {', '.join(fact.skipped[:MODULES_SHOWN])}",
        )


class AdapterTargetsAbsent(Check):
    """Names in an adapter's `target_modules` or `modules_to_save` match no module, so nothing is trained there.

    ## Why is this a bug?
    PEFT adapts what it finds and is silent about the rest, as long as one name matches. A list made for another
    architecture (`q_proj`, `k_proj`, `v_proj` on a model with a fused `qkv_proj`) then adapts a few layers and leaves
    out the attention: the adapter trains, and learns less than it could. A name in `modules_to_save` that the model
    does not have (`classifier` when the head is called `score`) leaves a new head random.

    ## What to do
    Print `model.named_modules()` and use the names that exist, or set `target_modules="all-linear"`.

    ## When it is right
    One list for several architectures, on purpose. Patterns (a string) and `all-linear` are not checked.

    ## References
    - https://huggingface.co/docs/peft/developer_guides/lora
    """

    new_since = "0.2.0"

    def judge(self, fact: AdapterTargets) -> Verdict:
        if not fact.absent:
            return HELD
        absent, matched = len(fact.absent), len(fact.matched)
        return Found(
            expected=f"a module for each name in {fact.option}",
            observed=f"{absent} of {absent + matched} names in {fact.option} of the adapter {fact.adapter!r} "
            f"{'matches' if absent == 1 else 'match'} no module: {', '.join(fact.absent[:TARGETS_SHOWN])}; "
            f"matched: {', '.join(fact.matched[:TARGETS_SHOWN]) or 'none'}",
        )


class AdapterUntrained(Check):
    """An added adapter is never trained, because it is never the active one.

    ## Why is this a bug?
    `add_adapter` does not make the new adapter the active one. The passes still go through the active adapter, which is
    trained further, and the new one stays as it was made: its output is zero, and the model with it is the model
    without it. It is saved and loaded like any other.

    ## What to do
    Call `model.set_adapter(NAME)` after `model.add_adapter(NAME, config)`, and create the optimizer after that.

    ## When it is right
    An adapter whose output is not zero, because it was trained before, is not reported. Neither is one that is called
    alongside the trained one, as a reference is, or one that is trained later in the script. One that was made before
    the trained one, such as the first of `get_peft_model`, is not reported either.

    ## References
    - https://huggingface.co/docs/peft/package_reference/peft_model#peft.PeftModel.add_adapter
    """

    new_since = "0.3.0"

    def judge(self, fact: AdaptersActive) -> Verdict:
        for name, zero in fact.never.items():
            return Found(
                expected=f"{name!r} as the active adapter in training",
                observed=f"the active adapter is always {names(fact.active)}; {name!r} was never trained: its "
                f"{zero} is still zero",
            )
        return HELD
