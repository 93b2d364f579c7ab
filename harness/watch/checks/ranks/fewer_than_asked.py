from __future__ import annotations

from harness import launch
from harness.watch.check import Check
from harness.watch.events import End


class FewerThanAsked(Check):
    """One process trains, where several were asked for.

    ## Why is this a bug?
    `accelerate launch --cpu --num_processes 2` starts one process without a word. The script runs as it would by
    itself: with half of the intended batch, twice as many updates, and twice the time.

    ## What to do
    Start the script on CPUs with ACCELERATE_USE_CPU=true torchrun --nproc-per-node N, and on GPUs with accelerate
    launch --multi_gpu.

    ## When it is right
    A script that is started in one process, by `python` or by `accelerate launch` without a number of processes, is not
    reported.
    """

    needs = "second process"
    formerly = ("ranks::as-many-as-asked",)

    def on_end(self, event: End) -> None:
        self.looked = launch.world_size() is not None
        if advice := launch.fewer_than_asked():
            self.found(expected="several processes", observed="one", hint=advice)
