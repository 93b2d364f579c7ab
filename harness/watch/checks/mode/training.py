from __future__ import annotations

from harness.watch.check import HELD, Check, Found, NothingToJudge, Verdict
from harness.watch.checks.mode.observations.training_modes import (
    MIN_DRIFTS,
    FrozenNorms,
    TeacherAnswered,
    TrainedThrough,
    UpdatedInEvalMode,
)

MIN_UPDATES = 4
"""Updates from which on it is no accident."""


class FrozenNormDrifts(Check):
    """Frozen batch normalisation layers are in train mode, so their running statistics still change.

    ## Why is this a bug?
    `requires_grad_(False)` keeps weights unchanged, but not the running mean and variance, which are not parameters:
    every batch in train mode updates them. A frozen backbone is then not the same at the end as at the beginning, and
    its features in evaluation are not those that the head was trained on.

    ## What to do
    Call `backbone.eval()` after every `model.train()`.

    ## When it is right
    Batch normalisations of a network that is frozen only while another one makes its step are not reported. Neither are
    those of a copy that follows the trained network (a momentum encoder), or those in eval mode. Ignore this warning if
    the statistics should adapt to another domain.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html
    """

    new_since = "0.3.0"
    severity = "warning"

    def judge(self, fact: FrozenNorms) -> Verdict:
        if fact.updates != MIN_DRIFTS:
            return HELD
        return Found(
            expected="frozen batch normalisation layers in eval mode",
            observed=f"{fact.drifting} of {fact.frozen} frozen batch normalisation "
            f"layer{' is' if fact.frozen == 1 else 's are'} in train mode: each batch changes the running statistics",
        )


class TeacherInTrainMode(Check):
    """An untrained teacher is in train mode, so dropout or batch normalisation makes its outputs noisy.

    ## Why is this a bug?
    A teacher's output is the target of its student. In train mode, dropout drops different parts of it each time, and
    batch normalisation uses each batch's own moments and writes them into the teacher. `student.train()` reaches a
    teacher that is a part of the same module.

    ## What to do
    Call `teacher.eval()` after every `train()` that reaches it; if the teacher is a submodule, override `train()`.

    ## When it is right
    A teacher with the student's own architecture, such as the average in mean teacher or BYOL, is not reported: it may
    be in train mode on purpose. Neither is a network that an optimizer trains, one with a different kind of output from
    the trained model's, or one without dropout and batch normalisation.
    """

    new_since = "0.3.0"
    severity = "warning"

    def judge(self, fact: TeacherAnswered) -> Verdict:
        if fact.updates != MIN_UPDATES or not (fact.norms or fact.dropouts):
            return HELD
        what = [f"{fact.norms} batch normalisation layer{'s' * (fact.norms != 1)}"] * bool(fact.norms)
        what += [f"{fact.dropouts} dropout layer{'s' * (fact.dropouts != 1)}"] * bool(fact.dropouts)
        return Found(
            expected="the teacher in eval mode",
            observed=f"{fact.teacher}, which no optimizer holds and whose outputs have no graph, is "
            f"in train mode, with {' and '.join(what)}",
        )


class TrainingInEvalMode(Check):
    """A model is trained in eval mode, so dropout is off and batch statistics are not updated.

    ## Why is this a bug?
    Without dropout a fine-tuned model overfits sooner, and batch normalisation keeps the statistics that it had.
    Usually the first epoch is correct, and all epochs after the first evaluation are not: `model.eval()` stays in force
    until `model.train()` is called again. `from_pretrained` returns a model in eval mode, too.

    ## What to do
    Call model.train() at the start of each epoch.

    If the updates are made over the validation DataLoader, take `backward()` and `step()` out of its loop: the model is
    trained on the rows that it should be measured on.

    ## When it is right
    Models without dropout and batch normalisation, models with more than half of their parameters frozen, and models
    with a part in train mode are not reported. Neither are backward passes that no update uses, such as those of an
    attack on the inputs, or a model that was never in train mode and has only batch normalisation: its statistics may
    be meant to stand still. Ignore the finding if the training is to be without dropout.

    ## References
    - https://github.com/ThilinaRajapakse/simpletransformers/issues/941
    - https://github.com/ThilinaRajapakse/simpletransformers/issues/739
    """

    needs = "module of dropout or normalisation"

    def judge(self, fact: UpdatedInEvalMode) -> Verdict:
        modules = f"{fact.sensitive} dropout or normalisation module{'s' * (fact.sensitive != 1)}"
        observed = f"{fact.model} is in eval mode, and so {'is' if fact.sensitive == 1 else 'are'} its {modules}"
        hint, details = None, dict[str, str]()
        if fact.validates:
            observed += "; in train mode it is never trained over this DataLoader: are these updates in the validation?"
            hint = (
                "Move backward() and step() out of the validation loop; if it is a training loop, call model.train()."
            )
            details["case"] = "updates-in-validation"
        expected = "model.train() before the updates, and again after each evaluation"
        return Found(expected, observed, hint=hint, details=details)

    def judge_pass(self, fact: TrainedThrough) -> Verdict:
        return HELD if fact.training else NothingToJudge("dropout and normalisation may be in eval mode on purpose")
