from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.saved.observations.resumes import TrainingResumed
from harness.watch.facts.held_tensors import names
from harness.watch.facts.model_reloads import ModelReloaded
from harness.watch.facts.reloads import TokenizerReloaded

PRECISE, COARSE = 1e-3, 5e-2
"""Largest difference of logits, as a share of the largest, that loading may make: other kernels in float32, and
rounding to half precision. Guesses."""

LONGEST = 40
"""Characters of a text that are said."""


class LoadsOtherwise(Check):
    """A saved model gives different predictions when it is loaded again.

    ## Why is this a bug?
    The training was correct, but what is on disk is something else: the head or new embeddings were not saved with an
    adapter, an adapter was left out of the exported model, a wrapper gave the tensors other names. Libraries load what
    matches and say little about the rest, which stays random or as it is in the base.

    ## What to do
    Save the unwrapped model. With an adapter, name all other trained modules in `modules_to_save`, set `task_type`, and
    save the PeftModel, or merge it first (`merge_and_unload`). Then load the folder in a new process and compare the
    predictions.

    ## When it is right
    Models that their user is meant to complete: a base without its head, or parts of a pipeline. A folder that
    transformers and PEFT cannot load by themselves (a base that is in no folder) is not judged, and a note says so.
    Neither is a model that gives different output each time. A class of your own, or what `torch.save` has written, is
    judged if you say how to load it: `reload = "mine:load"` under `[tool.harness]`, a function that takes the path and
    returns the model. `--no-reload` loads nothing.

    ## References
    - https://github.com/huggingface/peft/issues/577
    - https://huggingface.co/docs/peft/developer_guides/checkpoint
    """

    new_since = "0.3.0"

    def judge(self, fact: ModelReloaded) -> Verdict:
        if fact.misfit is not None:
            return Found(
                expected="a saved model that can be loaded",
                observed=f"{fact.path} cannot be loaded in a new process: {fact.misfit}",
                update=fact.update,
                hint="If you resized the vocabulary of the base, save the base as well and name it as the adapter's "
                "base: an adapter is loaded with the shapes of its base on disk, a model with those of its config.",
            )
        if fact.apart <= (COARSE if fact.coarse else PRECISE):
            return HELD
        lacks = f"; missing from the file, so left at initial values: {names(fact.missing)}" if fact.missing else ""
        more = f"; in the file but not used: {names(fact.unexpected)}" if fact.unexpected else ""
        hint = None
        if fact.overwritten_base is not None:
            hint = (
                f"Save the merged model to its own folder: the adapter's base, {fact.overwritten_base}, was "
                "overwritten, and if the adapter was merged into the new one, it is applied twice."
            )
        return Found(
            expected="the same logits as when the model was saved",
            observed=f"the logits of the model loaded from {fact.path} in a new process differ by up to "
            f"{fact.apart:.2g} x the largest logit{lacks}{more}",
            update=fact.update,
            hint=hint,
        )


class ResumedIncompletely(Check):
    """A training is resumed with only part of its state: model, optimizer or scheduler starts from scratch.

    ## Why is this a bug?
    An optimizer without its moments makes first updates that are far too large; a scheduler at 0 warms up and decays a
    second time; a model at its first weights, with the moments and the learning rate of the end, is hardly trained at
    all. The resumed run does not crash: its loss has a bump, or is a little worse in the end.

    ## What to do
    Save and load the state_dict() of model, optimizer and scheduler.

    ## When it is right
    Loading only weights, to begin another training from them, is not reported: a resumed optimizer or scheduler shows
    that the others should have been resumed too. So does a file with the optimizer's state that the script later
    writes. This is a warning, because a separate stage may begin with the weights of the previous one.
    `from_pretrained` also resumes a model if the checkpoint has all of its weights. A new schedule for an optimizer
    that continues is a mistake only if it was made for more updates than are trained with it: one that ends with the
    training is a separate stage.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    explains = ("schedule::wrong-length", "schedule::may-be-too-long", "saved::not-what-was-trained")

    def judge(self, fact: TrainingResumed) -> Verdict:
        if fact.apart is None:
            return HELD
        return Found(
            expected="model, optimizer and scheduler all restored as saved",
            observed=fact.apart,
            update=fact.update,
            may_be_meant=fact.may_be_meant,
        )


class TokenizerOtherwise(Check):
    """A saved tokenizer, loaded again, tokenizes texts differently from the one used in training.

    ## Why is this a bug?
    A tokenizer that is saved before its new tokens are added has none of them. Neither has the base's tokenizer, if it
    is saved with the model in place of the one in use. The model then reads several tokens instead of the one that it
    has learnt, and the embeddings that were trained for the new ones are never looked up.

    ## What to do
    Save the tokenizer that made the batches, after you have added all tokens and set its chat template.

    ## When it is right
    A tokenizer that is changed on purpose after the training, and saved before that.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/tokenizer
    """

    since = "0.3.0"

    def judge(self, fact: TokenizerReloaded) -> Verdict:
        if fact.apart is not None:
            text, here, there = fact.apart
            text = repr(text[:LONGEST])
            observed = f"splits {text} into {there} token{'s' * (there != 1)} instead of {here} as in training"
            if here == there:
                observed = f"splits {text} into different tokens than in training"
        elif fact.talk == "the same":
            return HELD
        else:
            observed = "has no chat template" if fact.talk == "none" else "writes another text with its chat template"
        return Found(
            expected="the same tokens as in training",
            observed=f"the tokenizer loaded from {fact.path} in a new process {observed}",
            update=fact.update,
        )
