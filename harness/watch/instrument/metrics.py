"""Metrics: those of Evaluate, and scikit-learn's functions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from harness.watch.events import MetricCall, RankingCall
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.monitor import Monitor
from harness.watch.session import Session

SKLEARN = (
    "accuracy_score",
    "balanced_accuracy_score",
    "f1_score",
    "fbeta_score",
    "matthews_corrcoef",
    "precision_score",
    "recall_score",
    "precision_recall_fscore_support",
    "classification_report",
)

RANKINGS = ("average_precision_score", "precision_recall_curve", "roc_auc_score", "roc_curve")


def install_evaluate(session: Session, patches: Patches, module: ModuleType) -> None:
    def added(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if monitor := session.current():
            _emit(monitor, args[0].name, kwargs.get("predictions"), kwargs.get("references"), source=id(args[0]))
        return original(*args, **kwargs)

    def computed(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        with monitor.suspended:
            value = original(*args, **kwargs)
        given = kwargs.get("predictions"), kwargs.get("references")
        _emit(monitor, args[0].name, *given, whole=True, source=id(args[0]), value=value)
        return value

    patches.wrap(module.EvaluationModule, "add_batch", added)
    patches.wrap(module.EvaluationModule, "compute", computed)


def install_sklearn(session: Session, patches: Patches, module: ModuleType) -> None:
    def scored(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        with monitor.suspended:
            value = original(*args, **kwargs)
        given = dict(zip(("y_true", "y_pred"), args, strict=False)) | dict(kwargs)
        options = {name: each for name, each in kwargs.items() if name not in ("y_true", "y_pred")}
        detail = {"whole": True, "options": options, "value": value}
        _emit(monitor, original.__name__, given.get("y_pred"), given.get("y_true"), **detail)
        return value

    for owner in (module, sys.modules["sklearn.metrics"]):  # which may have taken them already
        for name in SKLEARN:
            patches.wrap(owner, name, scored)


def install_rankings(session: Session, patches: Patches, module: ModuleType) -> None:
    def ranked(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        with monitor.suspended:  # one computes another
            value = original(*args, **kwargs)
        given = dict(zip(("y_true", "y_score"), args, strict=False)) | dict(kwargs)
        references, scores = _listed(monitor, given.get("y_true")), _listed(monitor, given.get("y_score"))
        monitor.emit(RankingCall(original.__name__, scores, references, monitor.locator.where()))
        return value

    for owner in (module, sys.modules["sklearn.metrics"]):
        for name in RANKINGS:
            patches.wrap(owner, name, ranked)


INSTRUMENTS = (
    Instrument((MetricCall,), install_evaluate, "evaluate.module"),
    Instrument((MetricCall,), install_sklearn, "sklearn.metrics._classification"),
    Instrument((RankingCall,), install_rankings, "sklearn.metrics._ranking"),
)


def _emit(monitor: Monitor, metric: str, predictions: Any, references: Any, **more: Any) -> None:
    where = monitor.locator.where()
    monitor.emit(MetricCall(metric, _listed(monitor, predictions), _listed(monitor, references), where, **more))


def _listed(monitor: Monitor, values: Any) -> list[Any]:
    """The values; none of what only the script goes through: its iterators, and objects of its own classes."""
    module = sys.modules.get(type(values).__module__)
    file = getattr(module, "__file__", None)
    if values is None or isinstance(values, Iterator) or (file is not None and monitor.locator.is_users_file(file)):
        return []
    found = values.tolist() if hasattr(values, "tolist") else [_plain(each) for each in values]
    return found if isinstance(found, list) else [found]


def _plain(value: Any) -> Any:
    """The number of an array or tensor without dimensions."""
    return value.item() if getattr(value, "ndim", None) == 0 else value
