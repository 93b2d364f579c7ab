from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.facts.model_reloads import ModelReloaded
from harness.watch.facts.parameters import names
from harness.watch.facts.reloads import TokenizerReloaded
from harness.watch.facts.resumes import TrainingResumed

PRECISE, COARSE = 1e-3, 5e-2
"""Largest difference of logits, as a share of the largest, that loading may make: other kernels in float32, and
rounding to half precision. Guesses."""

LONGEST = 40
"""Characters of a text that are said."""


class LoadsOtherwise(Check):
    """A saved model gives other predictions when it is loaded again.

    ## Why is this a bug?
    The training was correct, but what is on disk is something else: the head or new embeddings were not saved with an
    adapter, an adapter was left out of the exported model, a wrapper gave the tensors other names. Libraries load what
    matches and say little about the rest, which stays random or as it is in the base.

    ## What to do
    Load the folder in a new process, as whoever uses it will, and compare the predictions. With an adapter, name what
    is trained besides in `modules_to_save`, set `task_type`, and save with the PeftModel, or merge it first
    (`merge_and_unload`). Save the unwrapped model.

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

    status = "new"

    def judge(self, fact: ModelReloaded) -> Verdict:
        if fact.misfit is not None:
            return Found(
                expected="a model that can be loaded again",
                observed=f"{fact.path} cannot be loaded in a new process: {fact.misfit}",
                update=fact.update,
                hint="What is loaded has the shapes of its config, an adapter those of its base on disk: save a base "
                "whose vocabulary was resized as well, and name it as the adapter's.",
            )
        if fact.apart <= (COARSE if fact.coarse else PRECISE):
            return HELD
        lacks = f"; not in it, and so left as they were made: {names(fact.missing)}" if fact.missing else ""
        more = f"; in it and not used: {names(fact.unexpected)}" if fact.unexpected else ""
        hint = None
        if fact.overwritten_base is not None:
            hint = (
                f"The adapter's base, {fact.overwritten_base}, was overwritten: if that is a model into which the "
                "adapter was merged, it is applied twice. Save the merged model to a folder of its own."
            )
        return Found(
            expected="the logits that the model had when it was saved",
            observed=f"loaded from {fact.path} in a new process, they are up to {fact.apart:.2g} of the largest apart"
            f"{lacks}{more}",
            update=fact.update,
            hint=hint,
        )


class ResumedIncompletely(Check):
    """A training is resumed with a part of its state: of model, optimizer and scheduler one begins anew.

    ## Why is this a bug?
    An optimizer without its moments makes first updates that are far too large; a scheduler at 0 warms up and decays a
    second time; a model at its first weights, with the moments and the learning rate of the end, is hardly trained at
    all. The resumed run does not crash: its loss has a bump, or is a little worse in the end.

    ## What to do
    Save and load the state_dict() of all three.

    ## When it is right
    Loading only weights, to begin another training from them, is not reported: only a resumed optimizer or scheduler
    shows that the others should have been resumed too. `from_pretrained` also resumes a model if the checkpoint has all
    of its weights. A new schedule for an optimizer that goes on is a mistake only if it was made for more updates than
    are trained with it: one that ends with the training is a stage of its own.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    formerly = ("saved::resumed-where-it-stopped",)
    explains = ("schedule::wrong-length", "schedule::may-be-too-long", "saved::not-what-was-trained")

    def judge(self, fact: TrainingResumed) -> Verdict:
        if fact.apart is None:
            return HELD
        return Found("model, optimizer and scheduler, all as they were saved", fact.apart, update=fact.update)


class TokenizerOtherwise(Check):
    """A saved tokenizer, loaded again, makes other tokens of the texts than the one that was trained with.

    ## Why is this a bug?
    A tokenizer that is saved before its new tokens are added has none of them. Neither has the base's tokenizer, if it
    is saved with the model in place of the one in use. The model then reads several tokens instead of the one that it
    has learnt, and the embeddings that were trained for the new ones are never looked up.

    ## What to do
    Save the tokenizer that made the batches, when all tokens are added and its chat template is set.

    ## When it is right
    A tokenizer that is changed on purpose after the training, and saved before that.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/tokenizer
    """

    status = "new"

    def judge(self, fact: TokenizerReloaded) -> Verdict:
        if fact.apart is not None:
            text, here, there = fact.apart
            observed = f"{there} tokens of {text[:LONGEST]!r} where the training had {here}"
            if here == there:
                observed = f"other tokens of {text[:LONGEST]!r} than the training had"
        elif fact.talk == "the same":
            return HELD
        else:
            observed = "another text by its chat template" if fact.talk == "another" else "it has no chat template"
        return Found(
            expected="the tokens that the model was trained with",
            observed=f"loaded from {fact.path} in a new process: {observed}",
            update=fact.update,
        )
