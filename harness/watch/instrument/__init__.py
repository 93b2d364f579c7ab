"""Where the watch looks: torch's public hooks, and wrapped functions where there are none. One file a library."""

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
    losses,
    metrics,
    optimizers,
    schedulers,
    states,
    torch_modules,
    transformers,
)
from harness.watch.instrument.patches import Patches
from harness.watch.monitor import Threads

LIBRARIES: dict[str, Callable[[Threads, Patches, ModuleType], None]] = {
    accelerate.MODULE: accelerate.install,
    datasets.MODULE: datasets.install,
    **metrics.MODULES,
    **transformers.MODULES,
}
"""What the script may import, by the module in which something is wrapped."""


@contextmanager
def instrumented(threads: Threads) -> Iterator[None]:
    """Report to ``threads`` what happens; afterwards everything is as it was."""
    patches = Patches()
    with ExitStack() as stack:
        stack.callback(patches.undo)
        for handle in (*torch_modules.install(threads), *optimizers.hooks(threads)):
            stack.callback(handle.remove)
        for part in (data, backward, optimizers, schedulers, losses, arithmetic, states):
            part.install(threads, patches)
        for module, install in LIBRARIES.items():
            patches.when_imported(module, functools.partial(install, threads, patches))
        yield
