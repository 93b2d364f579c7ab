from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.facts.ranks import DatasetsOfRanks, ProcessesAsked, RowsOfRanks, WeightsOfRanks

MAX_SHARE_OF_COMMON_ROWS = 0.5
"""Largest share of a rank's rows that may be another rank's too, as rows may be alike. By reasoning: ranks that share
their rows by mistake share all of them."""


class FewerThanAsked(Check):
    """Only one process trains, although you asked for several.

    ## Why is this a bug?
    `accelerate launch --cpu --num_processes 2` silently starts one process. The script runs as it would by itself: with
    half of the intended batch, twice as many updates, and twice the time.

    ## What to do
    Start the script on CPUs with ACCELERATE_USE_CPU=true torchrun --nproc-per-node N, and on GPUs with accelerate
    launch --multi_gpu.

    ## When it is right
    A script that is started in one process, by `python` or by `accelerate launch` without a number of processes, is not
    reported.
    """

    def judge(self, fact: ProcessesAsked) -> Verdict:
        return Found("several processes", "only one process", hint=fact.advice) if fact.advice else HELD


class RowsDividedTwice(Check):
    """The training rows are split among the processes twice, so many of them are never trained on.

    ## Why is this a bug?
    `accelerator.prepare` and `DistributedSampler` give each rank its part of the dataset that they are given. If that
    is already a part (`dataset.shard(world_size, rank)`), each rank trains on a part of its part: with two processes
    half of the rows come up, with eight an eighth.

    ## What to do
    Split the rows only once: give accelerator.prepare or the DistributedSampler the whole dataset on each rank.

    ## When it is right
    Ranks that each have their own dataset and use it in full are not reported. Neither are datasets whose rows cannot
    be read without calling the script's own code.

    ## References
    - https://github.com/huggingface/accelerate/issues/4201
    """

    def judge(self, fact: DatasetsOfRanks) -> Verdict:
        if not fact.differ:
            return HELD
        return Found(
            expected="the same dataset on all ranks, split once",
            observed=f"each rank has its own dataset ({fact.rows} rows on rank 0) and gets only one of {fact.parts} "
            "parts of it",
        )


class RowsShared(Check):
    """Several processes train one model on the same rows.

    ## Why is this a bug?
    The ranks' gradients are averaged. If all of them come from the same rows, the average is what one process would
    have had by itself: several times the work for the same update, and as many epochs as there are ranks for each
    intended one.

    ## What to do
    Pass the training DataLoader to accelerator.prepare, or give it a DistributedSampler.

    ## When it is right
    A few rows that come up on two ranks, because the data holds them twice or the last batches are filled up, are not
    reported.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
    - https://github.com/huggingface/accelerate/issues/2268
    """

    def judge(self, fact: RowsOfRanks) -> Verdict:
        if fact.common <= MAX_SHARE_OF_COMMON_ROWS * min(fact.rows, fact.others):
            return HELD
        return Found(
            expected="different rows for each rank",
            observed=f"{fact.common} of the {fact.rows} rows of rank 0 are also rows of rank {fact.rank}",
            update=1,
        )


class WeightsDiffer(Check):
    """Processes that train one model have different weights after an update.

    ## Why is this a bug?
    Each process then trains its own model, on its part of the rows. Only the first one's model is saved in the end, and
    the other processes have worked for nothing. The printed losses look as they always do.

    ## What to do
    Call the model that prepare() or DistributedDataParallel returned, not the one inside it; start all ranks from the
    same seed or checkpoint; clip and step in the same way on all ranks.

    ## When it is right
    Processes that were started together and never join a process group, such as the trials of a search, are not
    compared. Ranks that train apart and are averaged after some updates (local SGD) are not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/ddp.html
    - https://github.com/deepspeedai/DeepSpeed/issues/1801
    """

    def judge(self, fact: WeightsOfRanks) -> Verdict:
        if fact.same:
            return HELD
        if fact.averaged:
            return NOTHING_TO_JUDGE
        return Found(
            expected="the same weights on every rank",
            observed=f"the weights differ between the {fact.ranks} ranks",
            update=fact.update,
        )
