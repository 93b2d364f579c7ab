"""transformers: pretrained models, tokenizers and Trainer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from harness.watch.events import (
    EmbeddingsResized,
    Encode,
    FromPretrained,
    Generated,
    Load,
    ModelMade,
    ModelSaved,
    Rendered,
    Save,
    StateAsked,
    TokenizerMade,
    TokenizerSaved,
    TrainerMade,
)
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.monitor import Monitor
from harness.watch.session import Session


def install_models(session: Session, patches: Patches, module: ModuleType) -> None:
    def made(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        original(*args, **kwargs)
        if monitor := session.current():
            monitor.emit(ModelMade(args[0]))

    def loaded(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        where = monitor.locator.where()
        with monitor.suspended:
            model, info = original(*args, **{**kwargs, "output_loading_info": True})
        monitor.emit(FromPretrained(model, info, where))
        return (model, info) if kwargs.get("output_loading_info", False) else model

    def saved(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        return _saved(monitor, original, args, kwargs)

    def resized(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        before = getattr(args[0].get_input_embeddings(), "num_embeddings", None)
        embedding = original(*args, **kwargs)
        after = getattr(embedding, "num_embeddings", None)
        monitor = session.current()
        if monitor is not None and before is not None and after is not None:
            monitor.emit(EmbeddingsResized(embedding, before, after, monitor.locator.where()))
        return embedding

    patches.wrap(module.PreTrainedModel, "resize_token_embeddings", resized)
    patches.wrap(module.PreTrainedModel, "__init__", made)
    patches.wrap(module.PreTrainedModel, "from_pretrained", loaded)
    patches.wrap(module.PreTrainedModel, "save_pretrained", saved)


def _saved(monitor: Monitor, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    where = monitor.locator.where()
    given = kwargs.get("state_dict")
    monitor.emit(Save(args[0] if given is None else given, where))
    monitor.emit(StateAsked(args[0], where))
    with monitor.suspended:
        done = original(*args, **kwargs)
    folder = [*args[1:2], kwargs.get("save_directory")][0]
    if folder is not None:
        monitor.emit(ModelSaved(args[0], os.fspath(folder), where))
    return done


def install_adapters(session: Session, patches: Patches, module: ModuleType) -> None:
    def saved(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        return _saved(monitor, original, args, kwargs)

    def loaded(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """It looks for each tensor's place itself: that most of the model's are not in an adapter is no mistake."""
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        where = monitor.locator.where()
        with monitor.suspended:
            done = original(*args, **kwargs)
        adapter = [*args[2:3], kwargs.get("adapter_name")][0]
        state = {name: each for name, each in args[0].named_parameters() if f".{adapter}" in name}
        monitor.emit(Load(args[0], state, strict=False, where=where))
        return done

    patches.wrap(module.PeftModel, "save_pretrained", saved)
    patches.wrap(module.PeftModel, "load_adapter", loaded)


def install_tokenizers(session: Session, patches: Patches, module: ModuleType) -> None:
    def made(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        original(*args, **kwargs)
        if monitor := session.current():
            monitor.emit(TokenizerMade(args[0]))

    def called(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        encoding = original(*args, **kwargs)
        if monitor := session.current():
            given = [*args[1:], kwargs.get("text")][0], [*args[2:], kwargs.get("text_pair")][0]
            overflows = bool(kwargs.get("return_overflowing_tokens"))
            encodings = getattr(encoding, "encodings", None)
            monitor.emit(Encode(encodings, monitor.locator.where(), *given, overflows=overflows, tokenizer=args[0]))
        return encoding

    def saved(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        done = original(*args, **kwargs)
        folder = [*args[1:2], kwargs.get("save_directory")][0]
        if (monitor := session.current()) and folder is not None:
            monitor.emit(TokenizerSaved(args[0], os.fspath(folder), monitor.locator.where()))
        return done

    def rendered(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        text = original(*args, **kwargs)
        if monitor := session.current():
            names = ("conversation", "tools", "documents", "chat_template")
            given = dict(zip(names, args[1:], strict=False)) | dict(kwargs)
            template = str(given.get("chat_template") or getattr(args[0], "chat_template", None))
            where = monitor.locator.where()
            monitor.emit(Rendered(template, given.get("conversation"), given.get("tools"), where))
        return text

    patches.wrap(module.PreTrainedTokenizerBase, "apply_chat_template", rendered)
    patches.wrap(module.PreTrainedTokenizerBase, "__init__", made)
    patches.wrap(module.PreTrainedTokenizerBase, "save_pretrained", saved)
    patches.wrap(module.PreTrainedTokenizerBase, "__call__", called)


def install_generation(session: Session, patches: Patches, module: ModuleType) -> None:
    def generated(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        output = original(*args, **kwargs)
        tokens = getattr(output, "sequences", output)
        if (monitor := session.current()) and torch.is_tensor(tokens):
            monitor.emit(Generated(args[0], tokens, monitor.locator.where()))
        return output

    patches.wrap(module.GenerationMixin, "generate", generated)


def install_trainer(session: Session, patches: Patches, module: ModuleType) -> None:
    def made(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        original(*args, **kwargs)
        if monitor := session.current():
            monitor.emit(TrainerMade(args[0], monitor.locator.where()))

    patches.wrap(module.Trainer, "__init__", made)


INSTRUMENTS = (
    Instrument(
        (EmbeddingsResized, FromPretrained, ModelMade, ModelSaved, Save, StateAsked),
        install_models,
        "transformers.modeling_utils",
    ),
    Instrument(
        (Encode, Rendered, TokenizerMade, TokenizerSaved), install_tokenizers, "transformers.tokenization_utils_base"
    ),
    Instrument((Generated,), install_generation, "transformers.generation.utils"),
    Instrument((TrainerMade,), install_trainer, "transformers.trainer"),
    Instrument((Load, ModelSaved, Save, StateAsked), install_adapters, "peft.peft_model"),
)
