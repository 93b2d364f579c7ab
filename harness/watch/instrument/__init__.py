"""Where the watch looks: wrapped functions, and torch's public hooks where they cost no more. One file a library."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType

from harness.watch.instrument import (
    accelerate,
    arithmetic,
    backward,
    data,
    datasets,
    lightning,
    losses,
    metrics,
    optimizers,
    permutations,
    processes,
    reports,
    schedulers,
    seeds,
    states,
    torch_modules,
    transformers,
    warned,
)
from harness.watch.instrument.patches import Patches
from harness.watch.session import Session

LIBRARIES: tuple[tuple[str, Callable[[Session, Patches, ModuleType], None]], ...] = (
    *accelerate.MODULES.items(),
    (datasets.MODULE, datasets.install),
    *lightning.MODULES.items(),
    *metrics.MODULES.items(),
    ("torch.distributed", processes.install_groups),
    *reports.MODULES.items(),
    *states.MODULES.items(),
    *transformers.MODULES.items(),
)
"""What the script may import, by the module in which something is wrapped."""

_in_use: list[Session] = []


def is_in_use() -> bool:
    """Whether somebody watches in this process."""
    return bool(_in_use)


@contextmanager
def instrumented(threads: Session, *, hooked: bool = True) -> Iterator[None]:
    """Report to ``threads`` what happens; afterwards everything is as it was.

    Without ``hooked`` no hook is registered on the steps of optimizers: torch lets none be added or removed in such a
    hook, and who begins and ends a watch there calls :func:`optimizers.step_hooks` itself.
    """
    patches = Patches(threads.fails)
    with ExitStack() as stack:
        stack.callback(patches.undo)
        _in_use.append(threads)
        stack.callback(_in_use.remove, threads)
        for handle in optimizers.hooks(threads) if hooked else ():
            stack.callback(handle.remove)
        for part in (
            torch_modules,
            data,
            backward,
            optimizers,
            schedulers,
            seeds,
            losses,
            arithmetic,
            permutations,
            states,
            processes,
            reports,
            warned,
        ):
            part.install(threads, patches)
        for module, install in LIBRARIES:
            patches.when_imported(module, functools.partial(install, threads, patches))
        yield
