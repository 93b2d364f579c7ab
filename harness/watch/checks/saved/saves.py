from __future__ import annotations

from collections import defaultdict

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, NothingToJudge, Verdict
from harness.watch.facts.held_tensors import names
from harness.watch.facts.saved_models import EvaluatedSaved, SavesBegun, TrainedNotSaved, TrainedSaved
from harness.watch.facts.saved_states import ModelSaves, StateSaved, Trained

ADAPTED = "modules_to_save."
"""Part of the names of what is trained whole beside an adapter, and belongs to it."""


class BeforeLastUpdates(Check):
    """A model is saved after one training stage, trained further in another, and never saved again.

    ## Why is this a bug?
    What the last stage taught is gone when the script ends: the file has the model as it was before that stage.

    ## What to do
    Save the model after its last training stage, to a separate folder.

    ## When it is right
    A second stage that only measures something, such as how fast the model learns another task. A state that is kept as
    the best of several evaluations is not reported, nor is a model that gets another state in between.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    new_since = "0.3.0"
    needs = "model that is trained in several stages and saved"

    def judge(self, fact: ModelSaves) -> Verdict:
        made = {saved.updates_made for saved in fact.saves if saved.has}
        if not fact.at.complete or not made or len(fact.stages) < 2:
            return NOTHING_TO_JUDGE
        latest, trained = max(made), fact.trained
        if len(made) > 1 or latest not in fact.stages or trained.updates_made <= latest + 1:
            return HELD
        return Found(
            expected="the model saved after its last training stage",
            observed=f"{trained.name} is saved after {latest} updates, then trained until update "
            f"{trained.updates_made + 1} with a new optimizer, and never saved again",
            update=latest,
        )


class BeforeTraining(Check):
    """The model is saved only before its first update.

    ## Why is this a bug?
    The file holds the weights that the training began with. The training's own results look right, and nobody sees it
    until the file is loaded.

    ## What to do
    Save the model after training.

    ## When it is right
    Saving the first weights as well as the trained ones is not reported. Neither are data and statistics that are saved
    before the training, or a state that is saved to be loaded again.
    """

    explains = ("saved::not-what-was-evaluated", "weights::left-random")

    def judge(self, fact: SavesBegun) -> Verdict:
        if not fact.only_before:
            return HELD
        return Found(
            expected="the model saved after its updates",
            observed="the model was saved before the first update and never again",
            update=1,
        )


class BestIsLast(Check):
    """A state kept for later was not copied, so the weights of a later update are saved instead.

    ## Why is this a bug?
    `best = model.state_dict()` is not a copy: its tensors are the model's, and every update changes them. What is saved
    as the best is what the training ended with.

    ## What to do
    Keep `copy.deepcopy(model.state_dict())`, or save the state immediately.

    ## When it is right
    A state that is taken before the first update, in order to be saved as it is at the end, is not reported.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    new_since = "0.3.0"

    def judge(self, fact: StateSaved) -> Verdict:
        saved = fact.saved
        if saved.asked is None or not saved.asked.updates_made:
            return HELD
        return Found(
            expected="the weights from the moment when the state was kept",
            observed=f"the state kept after {saved.asked.updates_made} "
            f"update{'s' * (saved.asked.updates_made != 1)} shares its memory with the model, so the weights after "
            f"update {saved.updates_made} are saved instead",
            where=saved.asked.where,
            update=saved.updates_made,
        )


class LastUpdateMissing(Check):
    """The last save of the model comes before its last update.

    ## Why is this a bug?
    With accumulated gradients, an epoch may leave a few backward passes over, which get an extra update. A save at the
    epoch's last batch comes before it: the file has all updates but that one. The same goes for a save between
    `loss.backward()` and `optimizer.step()`.

    ## What to do
    Save the model after its last optimizer.step().

    ## When it is right
    A file that is meant to have the weights of before. Any later save of the model silences it.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    severity = "warning"
    new_since = "0.3.0"
    needs = "model that is saved after its last backward pass"

    def judge(self, fact: ModelSaves) -> Verdict:
        latest = next((saved for saved in reversed(fact.saves) if saved.has), None)
        if not fact.at.complete or latest is None or latest.passes != fact.trained.passes:
            return NOTHING_TO_JUDGE
        if fact.trained.steps == latest.steps:
            return HELD
        return Found(
            expected=f"{fact.trained.name} saved after its last update",
            observed=f"the last save is after update {latest.updates_made}; the next update, whose gradients were "
            "already computed, is in no file",
            where=latest.where,
            update=latest.updates_made,
        )


class NotWhatWasEvaluated(Check):
    """The weights evaluated at the end are never saved; other weights are.

    ## Why is this a bug?
    A moving average of the weights is often better than the weights themselves, and it is what the script evaluates. If
    the file has the weights that the optimizer changed, it does not give that result, and nobody has evaluated what is
    in it. The same goes for a best state that is restored before the evaluation but not before the save.

    ## What to do
    Save the model that you evaluate (`ema.module.state_dict()`), or evaluate what you save.

    ## When it is right
    Saving both, or evaluating both, is not reported, nor is a model whose weights have nothing in common with those
    that are saved.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    """

    new_since = "0.3.0"

    def judge(self, fact: EvaluatedSaved) -> Verdict:
        if not fact.other:
            return HELD
        return Found(
            expected="the evaluated weights in a saved file",
            observed="the evaluated weights are not the saved ones: they are an average of them, or an earlier state",
            update=fact.update,
        )


class NotWhatWasTrained(Check):
    """The saved model is not the one that was trained.

    ## Why is this a bug?
    Several objects stand for one model: what was loaded, what `prepare` returned, a wrapper, a copy. If the one that is
    saved is not the one that the optimizer changed, the file holds the checkpoint that the training began with, and a
    random new head; or the teacher instead of its student. The training's own results look correct.

    ## What to do
    Save the model that was trained (with Accelerate: accelerator.unwrap_model(model)).

    ## When it is right
    Saving the first weights as well as the trained ones is not reported. Neither are moving averages of the weights,
    copies that the script changes, or frozen models, such as a teacher, or a feature extractor of another class.

    ## References
    - https://huggingface.co/docs/accelerate/usage_guides/checkpoint
    """

    needs = "model saved after its updates"
    explains = ("saved::not-what-was-evaluated", "weights::left-random")

    def judge(self, fact: TrainedNotSaved) -> Verdict:
        if fact.saved == "a copy as it began":
            return Found(
                expected="the trained weights in the saved model",
                observed=f"the saved {fact.model} is a copy from the start of the training, unchanged since then",
                update=fact.update,
                hint="Save the model that was trained, or a copy made after training; update an average of its weights "
                "after each step.",
            )
        if fact.saved == "as loaded":
            return Found(
                expected="the trained weights in the saved model",
                observed=f"the saved {fact.model} is as it was loaded from its checkpoint, without any update",
                update=fact.update,
            )
        mine, other = fact.until
        return Found(
            expected="the model that was trained last",
            observed=f"the saved {fact.model} was trained until update {mine}; another one, trained until update "
            f"{other}, is never saved",
            update=fact.update,
            hint="Save the student instead of its teacher.",
        )

    def judge_saved(self, fact: TrainedSaved) -> Verdict:
        why = "all that was saved has the weights that the training began with"
        return NothingToJudge(why) if fact.untouched else HELD


class StateIncomplete(Check):
    """The state saved after training lacks trained tensors, or has wrong values in them.

    ## Why is this a bug?
    The running statistics of batch normalization are buffers, not parameters: a state made from `named_parameters()`,
    or from what has gradients, lacks them. A filter by name also drops what it was not meant for: layer 10 with layer
    1, the biases with the masks. Loading with `strict=False` is silent about it, and the model then has the statistics,
    or the layers, that it was made with. An average of weights has the statistics from before the training until
    `update_bn` has been called. Values that are too large for half precision become infinite.

    ## What to do
    Save `model.state_dict()`, or compare its names with those that you save. Before you save an average, call
    `torch.optim.swa_utils.update_bn(loader, average)`, or make it with `use_buffers=True`.

    ## When it is right
    Saving only a part on purpose: only some modules (an encoder without its head), or everything that has gradients
    when no buffer changes. The contents of several files count together. Statistics that each client in federated
    learning keeps for itself are reported: ignore the finding there.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    new_since = "0.3.0"
    needs = "state saved after updates"

    def judge(self, fact: ModelSaves) -> Verdict:
        saves = [saved for saved in fact.saves if not saved.is_base]
        if not any(saved.has for saved in saves):
            return NOTHING_TO_JUDGE
        latest = [saved for saved in saves if saved.updates_made == saves[-1].updates_made]
        has, infinite, stale = (
            frozenset[str]().union(*(getattr(saved, kind) for saved in latest))
            for kind in ("has", "not_finite", "stale")
        )
        for tensors, how in (
            (_lacking(fact.trained, has), "lacks"),
            (infinite, "has NaN or infinite values in"),
            (stale, "has values from before the training in"),
        ):
            if tensors:
                return Found(
                    expected=f"every tensor of {fact.trained.name} that the training changed",
                    observed=f"the saved state {how} {len(tensors)} tensor{'s' * (len(tensors) != 1)}: "
                    f"{names(sorted(tensors))}",
                    where=latest[-1].where,
                    update=latest[-1].updates_made,
                )
        return HELD


class WithoutAdapter(Check):
    """Only the untrained base model is saved; the trained adapter is saved nowhere.

    ## Why is this a bug?
    The updates changed the adapter alone. `unload()` removes it and returns the base, and `get_base_model()` returns
    the model behind it; a file of either holds the checkpoint that the training began with.

    ## What to do
    Save the adapter with `save_pretrained` of the PeftModel, or save the result of `merge_and_unload()`; `unload()`
    returns the base without the adapter.

    ## When it is right
    A base that is saved alongside its adapter, or into which the adapter was merged, is not reported. Adapters that the
    script has written itself are known by their shapes, and give a warning.
    """

    needs = "model with adapters that is saved"
    explains = ("saved::not-what-was-trained", "saved::not-what-was-evaluated", "weights::left-random")

    def judge(self, fact: ModelSaves) -> Verdict:
        if not fact.at.complete or not fact.saves:
            return NOTHING_TO_JUDGE
        if not all(saved.is_base for saved in fact.saves):
            return HELD if fact.trained.base else NOTHING_TO_JUDGE
        return Found(
            expected="the trained adapters among the saved files",
            observed=f"only the unchanged base of {fact.trained.name} is saved, without its adapters",
            update=fact.saves[-1].updates_made,
            may_be_meant=fact.trained.adapted_by_hand,
        )


def _lacking(trained: Trained, saved: frozenset[str]) -> set[str]:
    """What is not saved, of tensors that would be if this were a part on purpose: modules alone.

    Some tensors of a module, some of several blocks that are alike, or what adapters leave to be trained whole.
    """
    if trained.trainable <= saved:
        return trained.changed - saved
    modules = {name.rpartition(".")[0] for name in saved}
    lacking = {name for name in trained.trainable - saved if name.rpartition(".")[0] in modules or ADAPTED in name}
    blocks: dict[str, set[str]] = defaultdict(set)
    for name in trained.trainable:
        blocks[".".join("#" if each.isdigit() else each for each in name.split("."))].add(name)
    for alike in blocks.values():
        lacking |= alike - saved if alike & saved else set()
    return lacking
