"""Nothing leaves the machine: calls that upload are held back, and return what theirs return. Reading goes on.

Held back are what writes to the Hugging Face Hub (push_to_hub of all libraries ends there), W&B and Comet (both write
offline, into the isolated directory), MLflow with a server (a local store takes its place), and the Space or dataset of
trackio. TensorBoard.dev is no more.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import ModuleType
from typing import Any

from harness.starts.guard import Stays
from harness.watch.instrument.patches import Original, Patches

HUB = "https://huggingface.co"

COMMITS = ("create_commit", "upload_file", "upload_folder", "delete_file", "delete_files", "delete_folder")
"""Methods of HfApi that make a commit."""

CHANGING = tuple(
    "accept_ add_ batch_ cancel_ change_ comment_ copy_ create_ delete_ disable_ duplicate_ edit_ enable_ grant_ hide_ "
    "merge_ move_ pause_ permanently_ preupload_ reject_ rename_ request_ rerun_ restart_ resume_ run_job run_uv_ "
    "scale_ set_ super_squash_ suspend_ trigger_ update_ upload_".split()
)
"""How the names of methods begin that change something there. Those not named elsewhere return nothing."""

SERVER = "MLFLOW_TRACKING_URI"
"""Variable that names the server of MLflow."""

NOWHERE = "0" * 40
"""The hash of a commit that was not made."""

OFFLINE = ("offline", "disabled", "dryrun")
"""Modes in which W&B uploads nothing."""


class Uploads:
    """What was held back, each kind of call once."""

    def __init__(self, held_back: dict[str, None] | None = None) -> None:
        """``held_back`` is given what was."""
        self.held_back: dict[str, None] = {} if held_back is None else held_back
        self._on = True

    def install(self, patches: Patches) -> None:
        patches = patches.guarded_by(Stays())
        for module, hold in (
            ("huggingface_hub.hf_api", self._hub),
            ("wandb", self._wandb),
            ("mlflow", self._mlflow),
            ("comet_ml", self._comet),
            ("trackio", self._trackio),
        ):
            patches.when_imported(module, functools.partial(hold, patches))
        if _is_server(os.environ.get(SERVER)):
            self._says("MLflow's server")
            self._sets(patches, SERVER, None)
        patches.wrap(type(os.environ), "__setitem__", self._variable)
        for name in ("TRACKIO_SPACE_ID", "TRACKIO_DATASET_ID"):
            self._sets(patches, name, None)
        self._sets(patches, "TRACKIO_DIR", os.path.abspath(".trackio"))
        patches.at_the_end(self._ends)

    def _ends(self) -> None:
        self._on = False

    def _says(self, what: str) -> None:
        self.held_back[what] = None

    def _variable(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A server that the script names itself is not one either."""
        if self._on and len(args) == 3 and args[1] == SERVER and _is_server(args[2]):
            self._says("MLflow's server")
            return original(args[0], SERVER, _store())
        return original(*args, **kwargs)

    def _sets(self, patches: Patches, name: str, value: str | None) -> None:
        before = os.environ.get(name)

        def back() -> None:
            os.environ.pop(name, None)
            if before is not None:
                os.environ[name] = before

        patches.at_the_end(back)
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value

    def _hub(self, patches: Patches, module: ModuleType) -> None:
        api = module.HfApi

        def commit(name: str, given: Mapping[str, Any]) -> Any:
            url = f"{_url(given)}/commit/{NOWHERE}"
            return module.CommitInfo(
                commit_url=url,
                commit_message=given.get("commit_message") or name,
                commit_description=given.get("commit_description") or "",
                oid=NOWHERE,
            )

        def repository(name: str, given: Mapping[str, Any]) -> Any:
            return module.RepoUrl(_url(given))

        def nothing(name: str, given: Mapping[str, Any]) -> Any:
            return None

        changing = [name for name in dir(api) if name.startswith(CHANGING)]
        made = {**dict.fromkeys(changing, nothing), **dict.fromkeys(COMMITS, commit), "create_repo": repository}
        for name, make in made.items():
            for owner in (api, module):  # the function of that name is a method of an object that was made before
                if callable(original := getattr(owner, name, None)):
                    held = functools.partial(self._held, functools.partial(make, name), inspect.signature(original))
                    patches.wrap(owner, name, held)

    def _held(
        self,
        make: Callable[[Mapping[str, Any]], Any],
        signature: inspect.Signature,
        original: Original,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        self._says(f"huggingface_hub {original.__name__}")
        try:
            given: Mapping[str, Any] = signature.bind(*args, **kwargs).arguments
        except TypeError:  # whatever it is given, it is not called
            given = kwargs
        found = make(given)
        return _done(found) if kwargs.get("run_as_future") else found

    def _wandb(self, patches: Patches, module: ModuleType) -> None:
        def begun(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            mode = kwargs.get("mode") or os.environ.get("WANDB_MODE")
            if mode in OFFLINE[1:]:
                return original(*args, **kwargs)
            self._says("W&B (its runs are offline)")
            return original(*args, **{**kwargs, "mode": "offline"})

        def logged_in(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            return True

        patches.wrap(module, "init", begun)
        patches.wrap(module, "login", logged_in)
        if os.environ.get("WANDB_MODE", "online") not in OFFLINE:
            self._sets(patches, "WANDB_MODE", "offline")  # for the processes of its own

    def _mlflow(self, patches: Patches, module: ModuleType) -> None:
        def chosen(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            uri = args[0] if args else kwargs.get("uri")
            if not _is_server(uri):
                return original(*args, **kwargs)
            self._says("MLflow's server")
            return original(_store())

        def client(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            given = [_store() if _is_server(each) else each for each in args]
            named = {name: _store() if _is_server(each) else each for name, each in kwargs.items()}
            if given != [*args] or named != kwargs:
                self._says("MLflow's server")
            return original(*given, **named)

        patches.wrap(module, "set_tracking_uri", chosen)
        if hasattr(module, "MlflowClient"):
            patches.wrap(module.MlflowClient, "__init__", client)

    def _comet(self, patches: Patches, module: ModuleType) -> None:
        def begun(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            self._says("Comet (its experiments are offline)")
            return original(*args, **{**kwargs, "online": False})

        def made(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            self._says("Comet (its experiments are offline)")
            known = {each: kwargs[each] for each in ("project_name", "workspace", "disabled") if each in kwargs}
            return module.OfflineExperiment(**known, offline_directory=os.path.abspath(".comet"))

        patches.wrap(module, "start", begun)
        patches.wrap(module, "Experiment", made)

    def _trackio(self, patches: Patches, module: ModuleType) -> None:
        def begun(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            given = {name: None for name in ("space_id", "dataset_id") if kwargs.get(name)}
            if given:
                self._says("trackio's Space")
            return original(*args, **{**kwargs, **given})

        patches.wrap(module, "init", begun)


def _url(given: Mapping[str, Any]) -> str:
    """Address that a repository would have: of models at its name, of others below their kind."""
    kind, name = given.get("repo_type"), str(given.get("repo_id"))
    name = name if "/" in name else f"you/{name}"
    return f"{HUB}/{f'{kind}s/' if kind in ('dataset', 'space') else ''}{name}"


def _done(found: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(found)
    return future


def _store() -> str:
    """A store on this machine, in the script's own place."""
    return f"sqlite:///{os.path.abspath('mlflow.db')}"


def _is_server(uri: Any) -> bool:
    return isinstance(uri, str) and uri.startswith(("http:", "https:", "databricks"))
