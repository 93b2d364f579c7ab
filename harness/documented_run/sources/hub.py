"""Data and weights from the hub, or from its cache where the hub is out of reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from harness.compat import configuration, offline_setting, without_scripts
from harness.documented_run.recipe import Recipe
from harness.errors import CannotTry
from harness.findings import first_line

if TYPE_CHECKING:
    from datasets import DatasetDict

TIMEOUT = 5.0
"""Seconds to wait for the hub to answer before it counts as out of reach."""

FULL_NAMES = {"glue": "nyu-mll/glue", "bert-base-uncased": "google-bert/bert-base-uncased"}
"""The documents' short names, which the hub no longer serves to every client, with the repositories they mean."""

REMEDY = "give a local folder with --data DIR or --checkpoint DIR, or try --recipe tiny, which needs no network"


def reachable() -> bool:
    """Whether the hub answers within :data:`TIMEOUT` seconds, asked as its own client asks (proxies, offline mode)."""
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=TIMEOUT)
    except Exception:  # noqa: BLE001 - of requests or httpx, whichever the client uses
        return False
    return True


def path_and_configuration(dataset: str) -> tuple[str, str | None]:
    """What ``load_dataset`` is given.

    >>> path_and_configuration("glue/mrpc")
    ('nyu-mll/glue', 'mrpc')
    >>> path_and_configuration("stanfordnlp/sst2")
    ('stanfordnlp/sst2', None)
    """
    first, _, rest = dataset.partition("/")
    if first in FULL_NAMES:
        return FULL_NAMES[first], rest or None
    name, _, configuration = rest.partition("/")
    return f"{first}/{name}" if name else first, configuration or None


@contextmanager
def _offline() -> Iterator[None]:
    """What HF_HUB_OFFLINE=1 sets when Python starts: only the cache, and no 23 seconds of retries (hub 2.4)."""
    from datasets import config
    from huggingface_hub import constants

    settings = [(config, offline_setting()), (constants, "HF_HUB_OFFLINE")]
    before = [getattr(module, name) for module, name in settings]
    for module, name in settings:
        setattr(module, name, True)
    try:
        yield
    finally:
        for (module, name), value in zip(settings, before, strict=True):
            setattr(module, name, value)


def raw_datasets(recipe: Recipe) -> DatasetDict:
    """``load_dataset("glue", "mrpc")`` from the hub; from the cache if the hub is out of reach.

    Raises:
        CannotTry: neither the hub nor the cache has it.
    """
    from datasets import DatasetDict, load_dataset

    from harness.documented_run.sources.local import as_raw_features

    path, name = path_and_configuration(recipe.dataset)
    online = reachable()
    try:
        with nullcontext() if online else _offline():
            loaded = load_dataset(path, **configuration(name), **without_scripts())
    except Exception as error:
        if online:
            message = f"could not download the data {recipe.dataset} from the hub ({first_line(error)}); {REMEDY}"
        else:
            message = f"the data {recipe.dataset} is not in the local cache and the hub cannot be reached; {REMEDY}"
        raise CannotTry(message) from error
    assert isinstance(loaded, DatasetDict)  # no split was asked for
    return as_raw_features(recipe, loaded, where=f"the data {recipe.dataset} of the hub")


def checkpoint(name: str) -> str:
    """A name that ``from_pretrained`` accepts: the hub's where it can be reached, else the cached folder.

    Raises:
        CannotTry: neither the hub nor the cache has it.
    """
    from huggingface_hub import snapshot_download

    name = FULL_NAMES.get(name, name)
    if reachable():
        return name
    try:
        return snapshot_download(name, local_files_only=True)
    except Exception as error:
        raise CannotTry(
            f"the checkpoint {name} is not in the local cache and the hub cannot be reached; {REMEDY}"
        ) from error
