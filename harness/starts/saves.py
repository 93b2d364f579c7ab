"""What a script writes and reads: which values each file holds, and the kill in the middle of one."""

from __future__ import annotations

import functools
import json
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from harness.digests import Digests, values_in
from harness.starts.guard import is_ours
from harness.starts.journal import IN_MEMORY, Loaded, Moved, Saved, is_tensor
from harness.starts.recorder import Recording
from harness.watch.instrument.patches import Original, Patches
from harness.watch.locate import Locator

Given = Callable[[tuple[Any, ...], Mapping[str, Any]], tuple[Any, Any]]
"""What is saved, and where to: a path or an open file."""


@dataclass
class Files:
    """Counts the files that a script writes, and journals them."""

    recording: Recording
    locator: Locator
    folder: Path
    """The working directory in which the script began."""
    written: int = 0
    inside: int = 0
    """Whether a file is being written: by a function that calls another of those that are wrapped."""
    thread: int = field(default_factory=threading.get_ident)

    def install(self, patches: Patches) -> None:
        self._wrap(patches, torch, "save", _arguments("obj", "f"))
        self._wrap(patches, pickle, "dump", _arguments("obj", "file"))
        self._wrap(patches, json, "dump", _arguments("obj", "fp"))
        self._wrap(patches, np, "save", _arguments("arr", "file", reverse=True))
        patches.wrap(pickle, "dumps", self._dumps)
        for name in ("savez", "savez_compressed"):
            self._wrap(patches, np, name, _arrays)
        for name in ("write_text", "write_bytes"):
            self._wrap(patches, Path, name, _text)
        for module, name in ((torch, "load"), (pickle, "load"), (json, "load"), (np, "load")):
            self._wrap_reader(patches, module, name)
        patches.when_imported("torch.distributed.checkpoint", functools.partial(self._install_distributed, patches))
        patches.when_imported("safetensors.torch", functools.partial(self._install_safetensors, patches))

        sys.addaudithook(patches.guard.guarded(self._hears))  # none can be taken away: it ends with the process

    def _hears(self, event: str, args: tuple[Any, ...]) -> None:
        if is_ours():
            return
        if event == "open":
            self._opens(*args)
        elif event == "os.rename":
            before, after = (_path_of(each) for each in args[:2])
            if before is not None and after is not None:
                self.recording.writer.write(Moved(self._shown(before), self._shown(after)))

    def _opens(self, opened: Any, mode: Any, flags: int) -> None:
        """A file that the script opens to write it anew: what it writes is not known, and a kill leaves it empty."""
        if self.inside or threading.get_ident() != self.thread:
            return
        anew = flags & (os.O_WRONLY | os.O_RDWR) and flags & (os.O_TRUNC | os.O_EXCL)
        target = _path_of(opened) if anew else None
        if target is None or not target.absolute().is_relative_to(self.folder):
            return
        with self._writing():
            saved = self._begins({}, target, opened=True)
            if saved.number == self.recording.place.file:
                target.write_bytes(b"")
                self.recording.kill()
            self.recording.writer.write(replace(saved, done=True))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    def _install_distributed(self, patches: Patches, module: ModuleType) -> None:
        self._wrap(patches, module, "save", _arguments("state_dict", "checkpoint_id"))
        patches.wrap(module, "load", self._read_distributed)

    def _read_distributed(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        path = _path_of(kwargs.get("checkpoint_id", args[1] if len(args) > 1 else None))
        shown = None if path is None else self._shown(path)
        self.recording.writer.write(Loaded("file", self.recording.updates, self.locator.where(), shown))
        return original(*args, **kwargs)

    def _install_safetensors(self, patches: Patches, module: ModuleType) -> None:
        saves, loads = module.save_file, module.load_file
        for holder in list(sys.modules.values()):  # who was imported before has a name of its own for it
            for name, value in list(getattr(holder, "__dict__", {}).items()):
                if value is saves:
                    self._wrap(patches, holder, name, _arguments("tensors", "filename"))
                elif value is loads:
                    self._wrap_reader(patches, holder, name)

    def _wrap_reader(self, patches: Patches, owner: Any, name: str) -> None:
        def reads(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            if not self.inside:
                path = _path_of([*args[:1], *kwargs.values()][0])
                shown = None if path is None else self._shown(path)
                self.recording.writer.write(Loaded("file", self.recording.updates, self.locator.where(), shown))
            return original(*args, **kwargs)

        patches.wrap(owner, name, reads)

    def _wrap(self, patches: Patches, owner: Any, name: str, given: Given) -> None:
        def saves(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            saved, target = given(args, kwargs)
            if self.inside:
                return original(*args, **kwargs)
            path = _path_of(target)
            with self._writing():
                event = self._begins(values_in(saved), path)
                found = original(*args, **kwargs)
            if event.number == self.recording.place.file:
                if path is not None:
                    _cut(path, target)
                self.recording.kill()
            self.recording.writer.write(replace(event, done=True))
            return found

        patches.wrap(owner, name, saves)

    def _dumps(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A state that is pickled in memory, to be written to a file; nothing else that is pickled is of interest."""
        given = args[0] if args else kwargs.get("obj")
        if self.inside or threading.get_ident() != self.thread or not isinstance(given, (Mapping, torch.nn.Module)):
            return original(*args, **kwargs)
        with self._writing():
            values = values_in(given)
            found = original(*args, **kwargs)
        if self._has_weights(values):
            self.recording.writer.write(replace(self._begins(values, None), done=True))
        return found

    def _shown(self, path: Path) -> str:
        path = path.absolute()
        return str(path.relative_to(self.folder) if path.is_relative_to(self.folder) else path)

    def _begins(self, values: Digests, path: Path | None, *, opened: bool = False) -> Saved:
        self.written += 1
        event = Saved(
            number=self.written,
            at=self.recording.updates,
            pending=self.recording.pending,
            path=IN_MEMORY if path is None else self._shown(path),
            values=values,
            weights=self._has_weights(values),
            otherwise=self._has_all_names(values),
            where=self.locator.where(),
            opened=opened,
        )
        self.recording.writer.write(event)
        return event

    def _has_weights(self, values: Digests) -> bool:
        return any(is_tensor(each) for each in values.values()) and not self.recording.current_weights().isdisjoint(
            values.values()
        )

    def _has_all_names(self, values: Digests) -> bool:
        """Whether there is a tensor for each of the weights, by the ends of the keys."""
        names = self.recording.names_of_weights()
        keys = [key for key, value in values.items() if is_tensor(value)]
        return (
            bool(names) and len(keys) >= len(names) and all(any(key.endswith(each) for key in keys) for each in names)
        )


def _arguments(saved: str, target: str, reverse: bool = False) -> Given:
    """The first two arguments, by name or place."""

    def given(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        names = (target, saved) if reverse else (saved, target)
        found = {**dict(zip(names, args, strict=False)), **kwargs}
        return found.get(saved), found.get(target)

    return given


def _arrays(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    file = args[0] if args else kwargs.get("file")
    return {**{f"arr_{n}": each for n, each in enumerate(args[1:])}, **kwargs}, file


def _text(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    path, text = args[0], args[1] if len(args) > 1 else kwargs.get("data", "")
    try:
        return json.loads(text), path
    except (TypeError, ValueError):
        return text, path


def _path_of(target: Any) -> Path | None:
    """Path of what something is saved to; None where it is no file."""
    name = target if isinstance(target, (str, os.PathLike)) else getattr(target, "name", None)
    return Path(os.fspath(name)) if isinstance(name, (str, os.PathLike)) else None


def _cut(path: Path, target: Any) -> None:
    """Leave half of a file, as a kill in the middle of its writing does."""
    if hasattr(target, "flush"):
        target.flush()
    if not path.exists():  # NumPy adds an ending of its own
        path = path.with_name(f"{path.name}.npz" if path.with_name(f"{path.name}.npz").exists() else f"{path.name}.npy")
    if path.is_dir():
        path = max((each for each in path.rglob("*") if each.is_file()), key=lambda each: each.stat().st_size)
    os.truncate(path, path.stat().st_size // 2)
