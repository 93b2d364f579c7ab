from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.facts.graphs import ALIVE, LatestGraphs


class GraphsKept(Check):
    """Losses are kept together with their graphs, so memory grows with each update until it runs out.

    ## Why is this a bug?
    No result changes while the memory lasts. A loss tensor holds the graph that it was computed with. `total += loss`,
    or a list of losses, keeps one more graph with each update: the process slows down and runs out of memory after
    hours.

    ## What to do
    Add up loss.item(), or keep loss.detach().

    ## When it is right
    Losses that are kept for one update, of its micro-batches or of the steps of an episode, are not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/faq.html
    """

    severity = "warning"  # it costs memory, and changes no result for as long as there is some

    def judge(self, fact: LatestGraphs) -> Verdict:
        if not fact.all_alive:
            return HELD
        return Found(
            expected="losses that are freed after their backward pass",
            observed=f"the losses of the last {ALIVE} updates are all still in memory, with their graphs",
        )
