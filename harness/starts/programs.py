"""Programs that a script starts: they upload nothing, and in a mirror they may write there alone.

A program may be a shell, git, or another Python process (by *spawn* or *forkserver*). The fence is around what is
started and never around this process, which could not put files back then.
"""

from __future__ import annotations

import functools
import json
import os
import posix
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from harness.starts import fence
from harness.starts.again import again
from harness.starts.caches import cache_folders
from harness.starts.directory import Directory
from harness.starts.fence import LOG, RULES
from harness.starts.guard import Stays, ours
from harness.watch.instrument.patches import Original, Patches

OFFLINE = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline", "COMET_MODE": "offline"}
"""Variables by which the libraries of a program that is started upload nothing."""


class _Hears(Protocol):
    def starts(self, program: str) -> None: ...


class Programs:
    """Stands between the script and what starts a program."""

    def __init__(self, rules: Path | None, heard: _Hears) -> None:
        """``rules`` are those of :mod:`~harness.starts.fence`; None where nothing is fenced."""
        self._rules, self._heard = rules, heard

    @classmethod
    def of(cls, directory: Any, heard: _Hears) -> Programs:
        if not isinstance(directory, Directory) or directory.level != "mirror":
            return cls(None, heard)
        rules = directory.home / RULES
        if not rules.exists():
            writable = [str(directory.home), *directory.free, *cache_folders(), "/dev", "/proc"]
            beside = directory.home / f"{RULES}.{os.getpid()}"
            beside.write_text(json.dumps({"writable": writable, "log": str(directory.home / LOG)}))
            os.replace(beside, rules)
        return cls(rules, heard)

    def install(self, patches: Patches) -> None:
        import _posixsubprocess
        import subprocess

        patches = patches.guarded_by(Stays())
        for owner, name in ((_posixsubprocess, "fork_exec"), (subprocess, "_fork_exec")):
            patches.wrap(owner, name, self._fork_exec)
        for name in ("posix_spawn", "posix_spawnp"):
            patches.wrap(os, name, functools.partial(self._spawn, name == "posix_spawnp"))
        patches.wrap(os, "system", self._system)
        for name in ("execv", "execve"):  # all others call these
            patches.wrap(os, name, self._exec)

    def _fork_exec(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        words, programs, close, pass_fds, folder, environment, *rest = args
        if programs:
            self._heard.starts(os.fsdecode(programs[-1]))
        found = next((each for each in programs if _can_start(os.fsdecode(each), folder)), None)
        environment = [*_bytes(dict(os.environb) if environment is None else _read(environment))]
        if self._rules is not None and found is not None:
            words = [os.fsencode(word) for word in self._fenced(os.fsdecode(found), words)]
            programs = (words[0],)
        return original(words, programs, close, pass_fds, folder, environment, *rest, **kwargs)

    def _spawn(self, search: bool, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        path, words, environment, *rest = args
        program = os.fsdecode(path)
        if search and "/" not in program:
            import shutil

            program = shutil.which(program) or program
        given = _with_offline(dict(environment))
        if self._rules is None or not _can_start(program, None):
            return original(path, words, given, *rest, **kwargs)
        words = self._fenced(program, words)
        return original(words[0], words, given, *rest, **kwargs)

    def _system(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        command = os.fsdecode(args[0] if args else kwargs["command"])
        self._heard.starts((command.split() or ["sh"])[0])
        sets = "".join(f"{name}={value} " for name, value in OFFLINE.items() if name not in os.environ)
        if self._rules is not None:
            command = shlex.join(self._fenced("/bin/sh", ["sh", "-c", command]))
        with ours():  # and not a program of that name
            return original(f"{sets}{command}" if self._rules else f"export {sets}; {command}" if sets else command)

    def _exec(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        program, words = os.fsdecode(args[0]), [os.fsdecode(word) for word in args[1]]
        environment = dict(args[2]) if len(args) > 2 else dict(os.environ)
        again(program, words, environment)
        given = _with_offline(environment)
        # A process that has reported before it is replaced has left its place already.
        if self._rules is not None and self._rules.exists() and _can_start(program, None):
            words = self._fenced(program, words)
            program = words[0]
        posix.execve(program, words, given)  # which raises what the original would

    def _fenced(self, program: str, words: Sequence[Any]) -> list[str]:
        own = [sys.executable, "-I", "-S", fence.__file__, str(self._rules)]
        return [*own, program, *(os.fsdecode(word) for word in words)]


def _can_start(program: str, folder: Any) -> bool:
    path = os.path.join(os.fsdecode(folder), program) if folder is not None else program
    return "/" in path and os.path.isfile(path) and os.access(path, os.X_OK)


def _read(environment: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(line.split(b"=", 1) for line in environment)


def _bytes(environment: dict[bytes, bytes]) -> list[bytes]:
    given = _with_offline({os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()})
    return [os.fsencode(f"{name}={value}") for name, value in given.items()]


def _with_offline(environment: dict[Any, Any]) -> dict[Any, Any]:
    server = environment.get("MLFLOW_TRACKING_URI")
    if isinstance(server, str) and server.startswith(("http:", "https:", "databricks")):
        environment["MLFLOW_TRACKING_URI"] = f"sqlite:///{tempfile.gettempdir()}/mlflow.db"
    return {**OFFLINE, **environment}
