from __future__ import annotations

from harness.watch.check import NOTHING_TO_JUDGE, Check, Found, Held, NothingToJudge, Verdict
from harness.watch.checks.mode.observations.evaluations_by_hand import ON_PURPOSE, EvaluatedByHand
from harness.watch.run.evaluations import Evaluation, FirstCall

NO_EVALUATION = NothingToJudge(
    "calls that nothing scores, of one batch of many or of rows that are trained on may be meant"
)


class EvaluationInTrainMode(Check):
    """A model is evaluated in train mode, so dropout or batch normalisation changes its predictions.

    ## Why is this a bug?
    The score is that of a model with some of its activations missing: too low, and different each time. Batch
    normalisation also mixes the statistics of the evaluation's rows into its own, which changes the model.

    ## What to do
    Call model.eval() before the evaluation, and model.train() after it.

    ## When it is right
    A look at a single batch is not reported. Neither are several forward passes for each batch, or several passes
    between two updates (Monte Carlo dropout). A pass over training rows, or a model without dropout and batch
    normalisation, is not reported either. A pass that only refreshes the statistics of batch normalisation, and scores
    nothing, is right if `update_bn` makes it, or if the model is called in eval mode next. Without a DataLoader, only
    rows that are never trained on are reported: a tensor that is scored more than once between updates, or after the
    last one, or a line that scores rows after three updates or more. A teacher's predictions, a generator's pictures,
    rewards and choices of rows to train on are not.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval
    """

    needs = "evaluation"

    def judge(self, evaluation: Evaluation) -> Verdict:
        meant = evaluation.repeated or evaluation.alike >= ON_PURPOSE or evaluation.renews
        verdict = self._judged_by_mode(evaluation.first)
        right = isinstance(verdict, Held) and _is_by_hand(evaluation)  # a wrong one is judged with what comes after it
        return verdict if right or (_is_of_a_loader(evaluation) and not meant) else NO_EVALUATION

    def judge_by_hand(self, fact: EvaluatedByHand) -> Verdict:
        return self._judged_by_mode(fact.first)

    def _judged_by_mode(self, first: FirstCall) -> Verdict:
        if not first.training:
            return Held("evaluated in eval mode")
        if not first.active:
            return Held("evaluated in train mode, without active dropout or normalisation")
        return Found(
            expected="model.eval() before the evaluation",
            observed=f"the model is in train mode, with {first.active} active dropout or normalisation "
            f"module{'s' * (first.active != 1)}",
        )


class EvaluationWithGraph(Check):
    """An evaluation builds a graph although no backward pass follows.

    ## Why is this a bug?
    No result changes; it costs memory and time. The graph keeps every layer's activations: an evaluation takes several
    times the memory that it needs, and is slower. If logits are collected over the whole pass, all of its graphs stay
    in memory until it ends.

    ## What to do
    Run the evaluation under torch.no_grad(): it needs much less memory.

    `volatile=True` has had no effect since torch 0.4.

    ## When it is right
    A look at a single batch is not reported, nor is a pass over rows that are trained on. Without a DataLoader, only
    what is scored after three updates or more is.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation
    """

    severity = "warning"  # it costs memory and time, and changes no result
    needs = "evaluation"

    def judge(self, evaluation: Evaluation) -> Verdict:
        verdict = self._judged_by_graph(evaluation.first)
        right = isinstance(verdict, Held) and _is_by_hand(evaluation)
        return verdict if right or _is_of_a_loader(evaluation) else NO_EVALUATION

    def judge_by_hand(self, fact: EvaluatedByHand) -> Verdict:
        once = fact.first.gradients and not fact.often
        return NOTHING_TO_JUDGE if once else self._judged_by_graph(fact.first)

    def _judged_by_graph(self, first: FirstCall) -> Verdict:
        if not first.gradients:
            return Held("evaluated without gradients")
        return Found(
            expected="torch.no_grad() or torch.inference_mode() around the evaluation",
            observed="the model's outputs have a graph, which no backward pass uses",
        )


def _is_by_hand(evaluation: Evaluation) -> bool:
    """Whether it is of rows of no loader, and something said how good the model is."""
    return evaluation.of is None and evaluation.scored


def _is_of_a_loader(evaluation: Evaluation) -> bool:
    """Whether it is of a loader's rows that are not trained on, and of more than one batch of many."""
    return evaluation.of is not None and not evaluation.is_a_look and not evaluation.of_training_loader
