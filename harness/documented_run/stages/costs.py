"""Costs: what the documents say saves memory and time, what of all models, and what makes results vary, measured.

Like equivalence it is no step of the documents: it measures beside the run, and leaves the run as it was. What it
finds is the installation's, so it is done where it is asked for (``harness run --installation``).
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import pairwise

import torch

from harness.documented_run.claims import claim
from harness.documented_run.stages.chain import Run, Stage
from harness.documented_run.stages.measures import compiled, losses, memory
from harness.documented_run.stages.measures.results import Costs
from harness.documented_run.stages.model import example_batch
from harness.findings import Finding, NotApplicable
from harness.torch_objects import unchanged_random_state


def not_asked_for(run: Run) -> str | None:
    """Why the stage is passed over; None where it was asked for."""
    if run.recipe.processes > 1:
        return "measured in one process"
    return None if run.installation else "some seconds of CPU; harness run --installation does it"


STAGE = Stage("costs", passed_over=not_asked_for)

WIDTHS = 3
"""Batches of so many different widths are compiled for."""


@STAGE.step
def costs(run: Run) -> None:
    run.costs = Costs()
    with memory.readers() as readers, unchanged_random_state():
        run.costs.corpus = readers.corpus
        batch = example_batch(run)
        run.costs.kept = {
            "with gradients": memory.kept(run.model, batch, nullcontext()),
            "no_grad": memory.kept(run.model, batch, torch.no_grad()),
        }
        measure_graphs(run)
        run.costs.returned, run.costs.varied = losses.returned(), losses.varied(run)
        try:
            run.costs.resident = readers.resident()
        except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
            run.costs.missing["resident"] = f"{error}"


def measure_graphs(run: Run) -> None:
    """How often the model's embeddings, the first module that a batch goes through, are compiled."""
    own, fixed = batches_of_own_widths(run)
    if len(own) < 2:
        run.costs.missing["graphs"] = "all whole batches of the validation data have one width"
        return
    module = getattr(run.model.base_model, "embeddings", None) or run.model.get_input_embeddings()
    try:
        run.costs.graphs = {
            "one width": compiled.graphs(module, fixed),
            "own widths": compiled.graphs(module, own),
        }
    except Exception as error:  # noqa: BLE001 - a torch, Python or model that compiles nothing; no recipe asks for it
        run.costs.missing["graphs"] = f"torch.compile: {type(error).__name__}: {error}".partition("\n")[0]


def batches_of_own_widths(run: Run) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The ids of the first whole validation batches of different widths, and the same as wide as the widest."""
    found: dict[int, torch.Tensor] = {}
    for batch in run.eval_dataloader:
        ids = batch["input_ids"]
        if len(ids) == run.recipe.batch_size:
            found.setdefault(ids.shape[1], ids.to(run.device))
        if len(found) == WIDTHS:
            break
    widest = max(found, default=0)
    pad = run.tokenizer.pad_token_id
    fixed = [torch.nn.functional.pad(ids, (0, widest - width), value=pad) for width, ids in found.items()]
    return list(found.values()), fixed


def require_measured(run: Run, name: str) -> None:
    """For checks of one of the costs.

    Raises:
        NotApplicable: it was not measured, with the reason.
    """
    if reason := run.costs.missing.get(name):
        raise NotApplicable(reason)


def as_mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


@STAGE.check(claim("arrow-on-disk"))
def only_the_rows_read_are_in_memory(run: Run) -> Iterator[Finding]:
    """A process that opens a corpus and reads some batches grows by less than half of it; in memory by all of it."""
    require_measured(run, "resident")
    resident, size = run.costs.resident, run.costs.corpus
    whole = as_mib(size)
    if not resident["mapped"] < size / 2:
        yield Finding(
            expected=f"less than half of {whole} in memory",
            observed=as_mib(resident["mapped"]),
            where="load_from_disk",
            hint="datasets copies data sets into memory: unset HF_DATASETS_IN_MEMORY_MAX_SIZE.",
        )
    # A tenth of it may take the place of what was freed before.
    if not resident["in memory"] > 0.9 * size:
        yield Finding(
            expected=f"all of {whole} in memory",
            observed=as_mib(resident["in memory"]),
            where="load_from_disk(keep_in_memory=True)",
            hint="This check measures resident memory, which this system may count differently.",
        )


@STAGE.check(claim("no-grad-saves"))
def no_grad_keeps_nothing(run: Run) -> Iterator[Finding]:
    """A forward pass of a batch keeps tensors for the backward pass, and under torch.no_grad() none."""
    require_measured(run, "kept")
    kept = run.costs.kept
    if kept["no_grad"] or not kept["with gradients"]:
        yield Finding(
            expected="bytes kept with gradients, 0 under torch.no_grad()",
            observed=f"{kept['with gradients']} and {kept['no_grad']} bytes",
            where="the first validation batch",
            hint="Something in the model switches gradients on (torch.enable_grad) or off.",
        )


@STAGE.check(claim("fixed-shapes"))
def one_width_is_compiled_once(run: Run) -> Iterator[Finding]:
    """Batches of one width are compiled for once, batches of their own widths anew for each width.

    By torch.compile(dynamic=False) with a backend that only counts, for the model's embeddings; a TPU's compiler knows
    no other shapes than fixed ones either.
    """
    require_measured(run, "graphs")
    one, own = run.costs.graphs["one width"], run.costs.graphs["own widths"]
    once = one[0] > 0 and one[-1] == one[0]
    anew = all(later > earlier for earlier, later in pairwise(own))
    if not (once and anew):
        yield Finding(
            expected=f"one compilation for {len(one)} batches of one width, {len(own)} for as many widths",
            observed=f"graphs after each batch: {one} and {own}",
            where="torch.compile(dynamic=False)",
            hint="What the embeddings do depends on more than the shape, or shapes are kept symbolic.",
        )


@STAGE.check(claim("all-models-return-the-loss"))
def models_with_a_head_return_the_loss(run: Run) -> Iterator[Finding]:
    """Given labels, models of six architectures return a loss for each task with labels, and no others do."""
    for (architecture, task), observed in run.costs.returned.items():
        expected = ("a loss",) if task in losses.WITH_LOSS else ("nothing", "an error")
        if observed not in expected:
            yield Finding(
                expected=" or ".join(expected),
                observed=observed,
                where=f"{architecture}, AutoModel{'For' if task else ''}{task}, given labels",
                hint="Look at the class's forward: under which name does it take what it learns from?",
            )


@STAGE.check(claim("what-varies"))
def head_order_and_dropout_vary(run: Run) -> Iterator[Finding]:
    """Another head, another order or other dropout, each alone, changes the losses; the same three on a CPU do not."""
    for factor, apart in run.costs.varied.items():
        if factor == "nothing":
            wrong = apart != 0 and run.device.type == "cpu"
        elif factor == "order":
            wrong = apart == 0 and run.recipe.shuffle
        else:
            wrong = apart == 0 and (factor == "head" or has_dropout(run.model))
        if wrong:
            yield Finding(
                expected="the same losses" if factor == "nothing" else "other losses",
                observed=f"losses {apart:.2g} apart",
                where=f"another seed for {factor}",
                hint="Some random numbers do not follow the seed, so runs with several seeds tell less about chance.",
            )


def has_dropout(model: torch.nn.Module) -> bool:
    return any(isinstance(each, torch.nn.Dropout) and each.p > 0 for each in model.modules())
