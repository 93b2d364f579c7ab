"""Where the observer looks: torch's public hooks, and patches of public functions where there are none."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim import Optimizer, lr_scheduler
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import dataloader

from harness.watch.events_old import Clip, Loaded, Loss, Pass, Scheduled, Scored, ZeroGrad
from harness.watch.observer import Observer
from harness.watch.patches import Patches

WHOLE, SHORTENED, LATER, WATCHED_PASSES = 40, 16, 4, 3
"""A pass of up to so many batches is not shortened; a longer one is to so many, after the first
passes to so few."""

TRAINED, AT_MOST = 2, 256
"""A shortened pass that trains goes on until it has seen so many updates, unless it needs more batches than that."""

LOSSES = (
    "cross_entropy",
    "nll_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "mse_loss",
    "kl_div",
)

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


@contextmanager
def looking(observer: Observer) -> Iterator[None]:
    """Tell ``observer`` what happens; afterwards everything is as it was."""
    patches = Patches()
    with ExitStack() as stack:
        stack.callback(patches.undo)
        for handle in _torch_hooks(observer):
            stack.callback(handle.remove)
        for watch in (_passes, _gradients, _schedulers, _losses, _states, _scalers):
            watch(observer, patches)
        for module, later in _LATER.items():
            patches.when_imported(module, functools.partial(later, observer, patches))
        try:
            yield
        finally:
            observer.quiet += 1  # what was made meanwhile may still call it


def _torch_hooks(observer: Observer) -> list[Any]:
    depth, within_own = [0], [False]

    def forward_begins(module: nn.Module, args: tuple[Any, ...]) -> None:
        if not depth[0]:
            within_own[0] = not hasattr(module, "config")
        depth[0] += 1

    def forward_ends(module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
        depth[0] -= 1
        if observer.quiet or observer.in_backward or len(rest) < 2 or rest[1] is None:
            return  # without keyword arguments and output where the forward raised
        kwargs, output = rest
        if depth[0]:
            if within_own[0] and hasattr(module, "base_model_prefix"):
                observer.inner_forward(module, args, kwargs, output)
            return
        if next(module.parameters(), None) is not None:
            observer.forward(module, args, kwargs, output)

    def step_begins(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not observer.quiet:
            observer.step_begins(optimizer)

    def step_ends(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not observer.quiet:
            observer.step_ends(optimizer)

    return [
        register_module_forward_pre_hook(forward_begins),
        register_module_forward_hook(forward_ends, with_kwargs=True, always_call=True),
        register_optimizer_step_pre_hook(step_begins),
        register_optimizer_step_post_hook(step_ends),
    ]


# Data


class _Indices:
    """A sampler's iterator, which remembers what it drew and may leave out the middle of a long pass."""

    def __init__(self, drawn: Iterator[Any], observer: Observer, seen: Pass) -> None:
        self._drawn, self._observer, self._seen = drawn, observer, seen
        self._given = 0
        self.queue: list[Any] = []

    def __next__(self) -> Any:
        seen = self._seen
        if seen.shortened:
            raise StopIteration
        index = next(self._drawn)
        if self._observer.shortened and self._is_enough():
            seen.shortened = True
            if seen.planned is None or (seen.trains and seen.updates < seen.batches - 1):
                raise StopIteration  # no last batch can be told, or it would leave a window unfilled
            for index in self._drawn:  # noqa: B007, the last one is wanted
                pass
        self._given += 1
        self.queue.append(index)
        return index

    def _is_enough(self) -> bool:
        seen = self._seen
        first = seen.number <= WATCHED_PASSES
        limit = WHOLE if seen.planned is None else SHORTENED
        if (seen.planned is not None and seen.planned <= WHOLE) or self._given < (limit if first else LATER) - 1:
            return False
        if not seen.trains or self._given >= AT_MOST:
            return True
        return seen.updates >= (TRAINED if first else 1) and seen.pending <= 1


class _Fetched(deque[tuple[Pass, Any, Any, Any]]):
    """Batches that a loader of Accelerate's took before it gives them: it looks one ahead to know the last."""

    ended: Pass | None = None


def _passes(observer: Observer, patches: Patches) -> None:
    seen_of: weakref.WeakKeyDictionary[Any, Pass] = weakref.WeakKeyDictionary()

    def begins(iterator: Any, loader: Any) -> Pass:
        planned = None
        if iterator._dataset_kind == dataloader._DatasetKind.Map:
            with suppress(TypeError):  # a sampler without a length
                planned = len(iterator._index_sampler)
        old = seen_of.get(iterator)
        if old is not None and not old.batches and old in observer.passes:
            observer.passes.remove(old)  # workers' iterators begin twice
        seen = observer.begin_pass(loader, planned)
        seen_of[iterator] = seen
        iterator._sampler_iter = _Indices(iterator._sampler_iter, observer, seen)
        return seen

    def initialised(original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def init(iterator: Any, loader: Any) -> None:
            original(iterator, loader)
            if observer.quiet:
                return
            seen = begins(iterator, loader)
            if loader.num_workers == 0 and iterator._auto_collation:
                collate = iterator._collate_fn

                @functools.wraps(collate)
                def collate_fn(samples: Any) -> Any:
                    seen.samples = samples
                    return collate(samples)

                iterator._collate_fn = collate_fn

        return init

    def began_again(original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def reset(iterator: Any, loader: Any, first_iter: bool = False) -> None:
            original(iterator, loader, first_iter)
            if not observer.quiet:
                begins(iterator, loader)

        return reset

    def gave(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(original)
        def following(iterator: Any) -> Any:
            seen = seen_of.get(iterator)
            if seen is None or observer.quiet:
                return original(iterator)
            try:
                data = original(iterator)
            except StopIteration:
                seen.exhausted = True
                if observer.fetching:
                    observer.fetching[-1].ended = seen
                else:
                    observer.end_pass(seen)
                raise
            queue = getattr(iterator._sampler_iter, "queue", None)
            drawn = queue.pop(0) if queue else None
            if observer.fetching:
                observer.fetching[-1].append((seen, drawn, seen.samples, data))
            else:
                observer.give(seen, drawn, seen.samples, data)
            seen.samples = None
            return data

        return following

    base = dataloader._BaseDataLoaderIter
    patches.replace(base, "__init__", initialised)
    patches.replace(base, "_reset", began_again)
    patches.replace(base, "__next__", gave)


# Gradients


def _gradients(observer: Observer, patches: Patches) -> None:
    def backward(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            root = tensors if torch.is_tensor(tensors) else next(iter(tensors), None)
            if observer.quiet or not torch.is_tensor(root) or observer.in_backward:
                return original(tensors, *args, **kwargs)
            with observer.backward(root):
                return original(tensors, *args, **kwargs)

        return watched

    def cleared(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(owner: Any, *args: Any, **kwargs: Any) -> Any:
            if not observer.quiet:
                observer.emit("zero_grad", ZeroGrad(observer.where()))
            return original(owner, *args, **kwargs)

        return watched

    def clipped(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if observer.quiet:
                return original(parameters, *args, **kwargs)
            given = [parameters] if torch.is_tensor(parameters) else list(parameters)
            observer.emit("clip", Clip(given, observer.where()))
            with observer.quietly():
                return original(given, *args, **kwargs)

        return watched

    def made(original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            if not observer.quiet:
                observer.optimizer_made(optimizer)

        return init

    def differentiated(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if not observer.quiet and observer.batch is not None:
                observer.batch.of.trains = True  # gradients that the script uses in its own way
            return original(*args, **kwargs)

        return watched

    patches.replace(torch.autograd, "grad", differentiated)
    patches.replace(Optimizer, "__init__", made)
    patches.replace(torch.autograd, "backward", backward)
    patches.replace(Optimizer, "zero_grad", cleared)
    patches.replace(nn.Module, "zero_grad", cleared)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        patches.replace(torch.nn.utils.clip_grad, name, clipped)
        patches.replace(torch.nn.utils, name, functools.partial(_same_as, torch.nn.utils.clip_grad, name))


def _same_as(owner: Any, name: str, original: Any) -> Any:
    return getattr(owner, name)


def _scalers(observer: Observer, patches: Patches) -> None:
    def scaled(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(scaler: Any, outputs: Any) -> Any:
            found = original(scaler, outputs)
            if scaler.is_enabled() and not observer.quiet:
                observer.scale = scaler.get_scale()
            return found

        return watched

    def unscaled(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(scaler: Any, optimizer: Any) -> Any:
            if scaler.is_enabled() and not observer.quiet:
                observer.emit("unscaled", optimizer)
            return original(scaler, optimizer)

        return watched

    def stepped(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = observer.optimizers.get(optimizer)
            made = before.steps if before else 0
            found = original(scaler, optimizer, *args, **kwargs)
            after = observer.optimizers.get(optimizer)
            if (after.steps if after else 0) == made and not observer.quiet:
                observer.emit("skipped", optimizer)
            return found

        return watched

    scaler = torch.amp.grad_scaler.GradScaler
    patches.replace(scaler, "scale", scaled)
    patches.replace(scaler, "unscale_", unscaled)
    patches.replace(scaler, "step", stepped)


def _schedulers(observer: Observer, patches: Patches) -> None:
    depth = [0]

    def made(original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def init(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            observer.schedulers[scheduler] = observer.where()
            depth[0] += 1  # it steps to its first value itself
            try:
                original(scheduler, *args, **kwargs)
            finally:
                depth[0] -= 1

        return init

    def stepped(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            depth[0] += 1
            try:
                return original(scheduler, *args, **kwargs)
            finally:
                depth[0] -= 1
                if not depth[0] and not observer.quiet:
                    observer.schedulers.setdefault(scheduler, None)
                    observer.emit("scheduled", Scheduled(scheduler, observer.where()))

        return watched

    def restored(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def load(scheduler: Any, state_dict: Mapping[str, Any]) -> Any:
            with observer.quietly():
                found = original(scheduler, state_dict)
            if not observer.quiet:
                observer.emit("loaded", Loaded(scheduler, state_dict, where=observer.where()))
            return found

        return load

    for name, each in list(vars(lr_scheduler).items()):
        if not inspect.isclass(each) or name.startswith("_") or not hasattr(each, "get_last_lr"):
            continue
        if vars(lr_scheduler).get(each.__name__) is each:  # not a second name of it
            for method, wrapper in (("__init__", made), ("step", stepped), ("load_state_dict", restored)):
                if method in vars(each):
                    patches.replace(each, method, wrapper)


# Losses


def _losses(observer: Observer, patches: Patches) -> None:
    def watched(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        bind = inspect.signature(original).bind

        @functools.wraps(original)
        def loss(*args: Any, **kwargs: Any) -> torch.Tensor:
            value = original(*args, **kwargs)
            if not observer.quiet and torch.is_tensor(value) and value.requires_grad:
                given = bind(*args, **kwargs).arguments
                inputs, target = given.pop("input"), given.pop("target")
                observer.loss(Loss(original.__name__, inputs, target, given, value, observer.batch, observer.where()))
            return value

        return loss

    for name in LOSSES:
        patches.replace(functional, name, watched)


# States


def _states(observer: Observer, patches: Patches) -> None:
    def into_module(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def load(module: nn.Module, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
            if observer.quiet:
                return original(module, state_dict, *args, **kwargs)
            strict = kwargs.get("strict", args[0] if args else True)
            event = Loaded(module, state_dict, strict=strict, where=observer.where())
            observer.emit("loads", event)
            with observer.quietly():
                keys = original(module, state_dict, *args, **kwargs)
            event.unexpected = list(getattr(keys, "unexpected_keys", ()))
            observer.emit("loaded", event)
            return keys

        return load

    def into_optimizer(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def load(optimizer: Any, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
            found = original(optimizer, state_dict, *args, **kwargs)
            if not observer.quiet:
                observer.emit("loaded", Loaded(optimizer, state_dict, where=observer.where()))
            return found

        return load

    def saved(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def save(obj: Any, *args: Any, **kwargs: Any) -> Any:
            if not observer.quiet:
                observer.emit("saved", (obj, observer.where()))
            return original(obj, *args, **kwargs)

        return save

    def asked(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def state_dict(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if observer.quiet:
                return original(module, *args, **kwargs)
            observer.emit("snapshot", module)
            with observer.quietly():
                return original(module, *args, **kwargs)

        return state_dict

    patches.replace(nn.Module, "state_dict", asked)
    patches.replace(nn.Module, "load_state_dict", into_module)
    patches.replace(Optimizer, "load_state_dict", into_optimizer)
    patches.replace(torch, "save", saved)


# Libraries that the script may import


def _accelerate(observer: Observer, patches: Patches, module: ModuleType) -> None:
    def ahead(original: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
        @functools.wraps(original)
        def iterate(loader: Any) -> Iterator[Any]:
            inner, fetched = original(loader), _Fetched()
            to_skip = getattr(loader, "skip_batches", 0)
            while True:
                observer.fetching.append(fetched)
                try:
                    data = next(inner)
                except StopIteration:
                    break
                finally:
                    observer.fetching.pop()
                for _ in range(min(to_skip, len(fetched) - 1)):
                    fetched.popleft()
                to_skip = 0
                if fetched and not observer.quiet:
                    seen, drawn, samples, _ = fetched.popleft()
                    observer.give(seen, drawn, samples, data)
                yield data
            if fetched.ended is not None and not observer.quiet:
                observer.end_pass(fetched.ended)

        return iterate

    for name in ("DataLoaderShard", "DataLoaderDispatcher"):
        patches.replace(getattr(module, name), "__iter__", ahead)


def _transformers(observer: Observer, patches: Patches, module: ModuleType) -> None:
    def loads(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if observer.quiet:
                return original(cls, *args, **kwargs)
            wanted = kwargs.pop("output_loading_info", False)
            where = observer.where()
            with observer.quietly():
                model, info = original(cls, *args, output_loading_info=True, **kwargs)
            observer.emit("from_checkpoint", (model, info, where))
            return (model, info) if wanted else model

        return from_pretrained

    def saves(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def save_pretrained(model: Any, *args: Any, **kwargs: Any) -> Any:
            if not observer.quiet:
                observer.emit("saved", (model, observer.where()))
                observer.emit("snapshot", model)
            with observer.quietly():
                return original(model, *args, **kwargs)

        return save_pretrained

    def made(original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def init(model: Any, *args: Any, **kwargs: Any) -> None:
            original(model, *args, **kwargs)
            if not observer.quiet:
                observer.emit("constructed", model)

        return init

    patches.replace(module.PreTrainedModel, "__init__", made)
    patches.replace(module.PreTrainedModel, "from_pretrained", loads)
    patches.replace(module.PreTrainedModel, "save_pretrained", saves)


def _tokenizers(observer: Observer, patches: Patches, module: ModuleType) -> None:
    def made(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def init(tokenizer: Any, *args: Any, **kwargs: Any) -> None:
            original(tokenizer, *args, **kwargs)
            observer.emit("tokenizer", tokenizer)

        return init

    def called(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def encode(tokenizer: Any, *args: Any, **kwargs: Any) -> Any:
            encoding = original(tokenizer, *args, **kwargs)
            if not observer.quiet:
                observer.emit("encoded", (getattr(encoding, "encodings", None), observer.where()))
            return encoding

        return encode

    patches.replace(module.PreTrainedTokenizerBase, "__init__", made)
    patches.replace(module.PreTrainedTokenizerBase, "__call__", called)


def _trainer(observer: Observer, patches: Patches, module: ModuleType) -> None:
    def made(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def init(trainer: Any, *args: Any, **kwargs: Any) -> None:
            original(trainer, *args, **kwargs)
            if not observer.quiet:
                observer.emit("trainer", (trainer, observer.where()))

        return init

    patches.replace(module.Trainer, "__init__", made)


def _datasets(observer: Observer, patches: Patches, module: ModuleType) -> None:
    def made(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def init(dataset: Any, *args: Any, **kwargs: Any) -> None:
            original(dataset, *args, **kwargs)
            observer.emit("dataset", dataset)

        return init

    def changed(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def change(dataset: Any, *args: Any, **kwargs: Any) -> Any:
            found = original(dataset, *args, **kwargs)
            observer.emit("dataset", found)
            return found

        return change

    patches.replace(module.Dataset, "__init__", made)
    for name in ("remove_columns", "select_columns", "rename_column", "rename_columns"):
        patches.replace(module.Dataset, name, changed)


def _evaluate(observer: Observer, patches: Patches, module: ModuleType) -> None:
    def added(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def add_batch(metric: Any, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> Any:
            """Add a batch, which the harness sees.\n"""
            _emit_scored(observer, metric.name, predictions, references, source=id(metric))
            return original(metric, predictions=predictions, references=references, **kwargs)

        return add_batch

    def computed(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def compute(metric: Any, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> Any:
            """Compute the metric, which the harness sees.\n"""
            if observer.quiet:
                return original(metric, predictions=predictions, references=references, **kwargs)
            with observer.quietly():
                value = original(metric, predictions=predictions, references=references, **kwargs)
            _emit_scored(observer, metric.name, predictions, references, whole=True, source=id(metric))
            return value

        return compute

    patches.replace(module.EvaluationModule, "add_batch", added)
    patches.replace(module.EvaluationModule, "compute", computed)


def _sklearn(observer: Observer, patches: Patches, module: ModuleType) -> None:
    def scored(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def score(y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
            if observer.quiet:
                return original(y_true, y_pred, *args, **kwargs)
            with observer.quietly():
                value = original(y_true, y_pred, *args, **kwargs)
            _emit_scored(observer, original.__name__, y_pred, y_true, whole=True, options=kwargs)
            return value

        return score

    for owner in (module, sys.modules["sklearn.metrics"]):  # which may have taken them already
        for name in SKLEARN:
            patches.replace(owner, name, scored)


def _emit_scored(
    observer: Observer,
    metric: str,
    predictions: Any,
    references: Any,
    *,
    whole: bool = False,
    options: Mapping[str, Any] | None = None,
    source: int = 0,
) -> None:
    if observer.quiet:
        return
    event = Scored(metric, _listed(predictions), _listed(references), observer.where(), options or {}, source, whole)
    observer.emit("scored", event)


def _listed(values: Any) -> list[Any]:
    if values is None:
        return []
    found = values.tolist() if hasattr(values, "tolist") else list(values)
    return found if isinstance(found, list) else [found]


_LATER: dict[str, Callable[[Observer, Patches, ModuleType], None]] = {
    "accelerate.data_loader": _accelerate,
    "transformers.modeling_utils": _transformers,
    "transformers.tokenization_utils_base": _tokenizers,
    "transformers.trainer": _trainer,
    "datasets.arrow_dataset": _datasets,
    "evaluate.module": _evaluate,
    "sklearn.metrics._classification": _sklearn,
}
