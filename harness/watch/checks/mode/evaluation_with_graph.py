from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Backward, End, Pass, PassEnds
from harness.watch.facts.modes import FirstForward, Modes
from harness.watch.monitor import Monitor


class EvaluationWithGraph(Check):
    """An evaluation builds a graph for a backward pass that never comes.

    ## Why is this a bug?
    No result changes; it costs memory and time. The graph keeps every layer's activations: an evaluation takes several
    times the memory that it needs, and is slower. If logits are collected over the whole pass, all of its graphs stay
    in memory until it ends.

    ## What to do
    Put the evaluation's forward under torch.no_grad(): it needs much less memory.

    `volatile=True` has had no effect since torch 0.4.

    ## When it is right
    A look at a single batch is not reported, nor is a pass over rows that are trained on.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation
    """

    severity = "warning"  # it costs memory and time, and changes no result
    needs = "evaluation over a DataLoader"
    formerly = ("mode::evaluation-without-graph",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.modes = monitor.fact(Modes)
        self.held: list[tuple[Pass, FirstForward]] = []
        """Passes with a graph since the latest backward pass: what comes next says whether it is one of theirs."""

    def on_pass_ends(self, event: PassEnds) -> None:
        first = self.modes.evaluated
        self.looked |= first is not None
        if first is not None and first.gradients:
            self.held.append((event.of, first))

    def on_backward(self, event: Backward) -> None:
        self._judge()

    def on_end(self, event: End) -> None:
        self._judge()

    def _judge(self) -> None:
        for of, first in self.held:
            if not of.trains:
                self.found(
                    expected="torch.no_grad() or torch.inference_mode() around the evaluation",
                    observed="the outputs carry a graph for a backward pass that never comes",
                    where=first.where,
                )
        self.held.clear()
