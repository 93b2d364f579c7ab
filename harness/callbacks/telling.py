"""Where findings are told: to ``logging``, and to the experiment trackers that the run uses.

A tracker is in use where its library has been imported and a run of it is active; none is imported here.
"""

from __future__ import annotations

import gc
import logging
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

from harness.findings import Finding, first_line

logger = logging.getLogger("harness")


def tell(finding: Finding) -> None:
    """Tell a finding; a tracker that fails is logged, and the run goes on."""
    level = logging.ERROR if finding.severity == "error" else logging.WARNING
    logger.log(level, "%s", _text(finding))
    for name, told in TRACKERS.items():
        library = sys.modules.get(name)
        try:
            if library is not None:
                told(library, finding)
        except Exception as error:  # noqa: BLE001 - the run never pays for it
            logger.warning("harness could not report to %s about %s: %s", name, finding.check, first_line(error))


def _wandb(wandb: ModuleType, finding: Finding) -> None:
    """An alert, and a line in the summary of the run."""
    run = getattr(wandb, "run", None)
    if run is not None:
        run.alert(title=_title(finding), text=_text(finding), level="ERROR" if finding.severity == "error" else "WARN")
        run.summary[f"harness/{finding.check}"] = _line(finding)


def _mlflow(mlflow: ModuleType, finding: Finding) -> None:
    """A tag, and the whole finding as an artifact."""
    run = mlflow.active_run()
    if run is not None:
        name = finding.check.replace("::", ".")  # a colon is allowed neither in a tag nor in a file's name everywhere
        mlflow.set_tag(f"harness.{name}", _line(finding))
        mlflow.log_dict(finding.as_dict(), f"harness/{name}.json")


def _trackio(trackio: ModuleType, finding: Finding) -> None:
    """An alert, where the version has them."""
    if not hasattr(trackio, "alert") or trackio.context_vars.current_run.get() is None:
        return
    level = trackio.AlertLevel.ERROR if finding.severity == "error" else trackio.AlertLevel.WARN
    trackio.alert(_title(finding), text=_text(finding), level=level)


def _tensorboard(tensorboard: ModuleType, finding: Finding) -> None:
    """A text in each log that is open. There is no active run to ask for: writers are looked for among all objects."""
    for thing in gc.get_objects():
        # isinstance would ask proxies for what they stand for, and a closed writer would open another file.
        if issubclass(type(thing), tensorboard.SummaryWriter) and thing.file_writer is not None:
            text = textwrap.indent(_text(finding), "    ")  # as code, since TensorBoard shows Markdown
            thing.add_text(f"harness/{finding.check}", text, finding.update)
            thing.flush()


TRACKERS: dict[str, Callable[[ModuleType, Finding], None]] = {
    "wandb": _wandb,
    "mlflow": _mlflow,
    "trackio": _trackio,
    "torch.utils.tensorboard": _tensorboard,
    "tensorboardX": _tensorboard,
}
"""Function that logs a finding, by the name of the library."""


def _title(finding: Finding) -> str:
    return f"harness: {finding.check}"


def _line(finding: Finding) -> str:
    place = f" ({finding.where}, update {finding.update})" if finding.where else f" (update {finding.update})"
    return f"{finding.message} Expected {finding.expected}; observed {finding.observed}{place}"


def _text(finding: Finding) -> str:
    """A finding with all that it says: what may explain it was told by itself."""
    follows = f" (may follow from {finding.explained_by})" if finding.explained_by else ""
    title = f"harness found in this run: {finding.check}{follows}"
    return "\n".join([title, *replace(finding, explained_by=None).lines()])
