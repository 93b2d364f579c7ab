"""Nothing is logged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any


def _nothing(*arguments: Any, **named: Any) -> None: ...


set_experiment = get_experiment_by_name = create_experiment = _nothing
log_params = log_param = set_tag = log_dict = log_metric = log_metrics = _nothing


@contextmanager
def start_run(run_name: str | None = None) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(info=SimpleNamespace(run_id=run_name))
