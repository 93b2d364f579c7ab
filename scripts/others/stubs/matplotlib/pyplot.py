from typing import Any


def _nothing(*arguments: Any, **named: Any) -> None: ...


figure = ylim = scatter = show = plot = savefig = xlabel = ylabel = _nothing
