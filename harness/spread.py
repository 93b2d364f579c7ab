"""Work on items that are independent of each other: in this process, or on the machines of a Ray cluster.

Ray places the tasks, moves their results and starts one again whose node is lost. A task writes nothing that lasts:
what comes back is written by the process that asked.
"""

from __future__ import annotations

import io
import os
import re
import signal
import socket
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar

from harness.errors import CannotTry
from harness.files import LEFT_OUT, check_size, working_in
from harness.findings import first_line
from harness.fingerprint import library_versions
from harness.processes import afterwards

Item = TypeVar("Item")
Result = TypeVar("Result")

On = Literal["here", "ray"]

RETRIES = 3
"""How often a task is started again because its node was lost."""

LARGEST = 2**30
"""Bytes of a working directory that are sent to the nodes at most."""

PAUSE = 10.0
"""Seconds without a result after which it is looked whether there is a node left."""

REACHABLE = 5.0
"""Seconds that the machine of RAY_ADDRESS has to answer."""

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # what it says of a lost node goes to stdout, a page of it
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # one attempt to reach a cluster takes 40 s
}
"""Ray's own, where nobody has set them; it reads them when it is imported."""


def spread(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    on: On = "here",
    *,
    threads: int | None = None,
    processes: int = 1,
    folder: Path | None = None,
    in_order: bool = False,
) -> Iterator[tuple[Item, Result]]:
    """Each item with ``work(item)``: here one after the other, as they are asked for; on Ray all at once, as they come.

    On Ray ``work`` and the items are pickled. A task has the CPUs of ``processes``, each with ``threads`` (as many as
    torch has here, if nobody says), and a GPU for each where this machine has any. It works in a copy of ``folder``,
    or else in the working directory of here, where the node has it. The cluster is the one that RAY_ADDRESS names, or
    that this machine is part of, or one of this machine alone, which is started.

    Args:
        in_order: whether results come in the order of the items.

    Raises:
        CannotTry: ``work`` did, on some node; Ray is not installed or not to be reached, its nodes are too small, have
            other versions of the libraries, or are lost.
    """
    if on == "here":
        for item in items:
            yield item, work(item)
        return
    import torch

    ray = _connected()
    threads = threads or torch.get_num_threads()
    needed = {"CPU": threads * processes, "GPU": processes if torch.cuda.is_available() else 0}
    _check_room(ray, needed)
    task = ray.remote(num_cpus=needed["CPU"], num_gpus=needed["GPU"], max_retries=RETRIES)(_on_a_node)
    same = library_versions(), threads, os.getcwd(), ray.put(None if folder is None else _packed(folder))
    pending = {task.remote(work, item, *same): item for item in items}
    try:
        while pending:
            done, _ = ray.wait(list(pending)[: 1 if in_order else None], timeout=PAUSE)
            if not done:
                _check_room(ray, needed)
            for each in done:
                yield pending.pop(each), _result(ray, each)
    finally:
        for each in pending:
            ray.cancel(each, force=True)


def _on_a_node(
    work: Callable[[Item], Result],
    item: Item,
    libraries: dict[str, str | None],
    threads: int,
    folder: str,
    packed: bytes | None,
) -> Result:
    """One task, in a process of Ray's."""
    import ray
    import torch

    # Ray sets it only where nobody has, and the process may have had another task with other threads.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    try:
        _check_versions(libraries)
        with _unpacked(folder, packed):
            return work(item)
    except CannotTry as error:
        node = ray.util.get_node_ip_address()
        raise CannotTry(
            f"{error} (on node {node} of the Ray cluster; every node needs the same packages and paths)"
        ) from None


def _check_versions(expected: dict[str, str | None]) -> None:
    """Whether a node has the libraries of the process that asked.

    Raises:
        CannotTry: it has not; names them.
    """
    found = library_versions()
    other = [f"{name} {found[name]}, expected {expected[name]}" for name in found if found[name] != expected[name]]
    if other:
        raise CannotTry(
            f"the installed versions differ from those where the command was started: {'; '.join(other)}; install those"
        )


def _packed(folder: Path) -> bytes:
    """A working directory as a tar file, without what no script reads.

    Raises:
        CannotTry: it is too large.
    """
    check_size(folder, LARGEST)

    def kept(file: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if LEFT_OUT("", [Path(file.name).name]) else file

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(folder, ".", filter=kept)
    return packed.getvalue()


@contextmanager
def _unpacked(folder: str, packed: bytes | None) -> Iterator[None]:
    """Enter a copy of the folder, or the folder itself where this node has it and nothing was sent."""
    if packed is None:
        with working_in(Path(folder)) if os.path.isdir(folder) else nullcontext():
            yield
        return
    with TemporaryDirectory(prefix="harness-node-", ignore_cleanup_errors=True) as name, afterwards(Path(name)):
        copy = Path(name, Path(folder).name)
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            tar.extraction_filter = lambda file, _: file  # it is the user's own
            tar.extractall(copy)  # noqa: S202
        with working_in(copy):
            yield


def _result(ray: Any, done: Any) -> Any:
    """What a task returned.

    Raises:
        CannotTry: it did; its node lacks a package; or it was lost as often as it is started again.
    """
    try:
        return ray.get(done)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, CannotTry):
            raise error.cause from None
        if missing := re.search(r"No module named '[^']+'", str(error)):
            raise CannotTry(
                f"a node of the Ray cluster lacks a package ({missing[0]}); every node needs the same packages"
            ) from error
        raise
    except ray.exceptions.RayError as error:
        raise CannotTry(f"Ray lost a task {RETRIES + 1} times ({first_line(error)}); check its nodes") from error


def _check_room(ray: Any, needed: dict[str, int]) -> None:
    """Whether a node is there that can take a task.

    Raises:
        CannotTry: there is none, and Ray would wait for one for ever.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(all(node.get(name, 0) >= count for name, count in needed.items()) for node in nodes):
        wanted = " and ".join(f"{count} {name}s" for name, count in needed.items() if count)
        raise CannotTry(
            f"no node of the Ray cluster has {wanted}, which one task needs, as on this machine; add such a node, "
            "or choose fewer threads with OMP_NUM_THREADS"
        )


def _connected() -> Any:
    """Ray, connected.

    Raises:
        CannotTry: it is not installed, or its cluster cannot be reached.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise CannotTry(
            f'Ray is not installed ({error}); install it with: pip install "full-training-harness[ray]"'
        ) from error
    if ray.is_initialized():
        return ray
    address = os.environ.get("RAY_ADDRESS", "")
    handler = signal.getsignal(signal.SIGTERM)
    try:
        host, colon, port = address.removeprefix("ray://").rpartition(":")
        if colon:  # Ray itself would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), REACHABLE).close()
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        where = f"at RAY_ADDRESS={address}" if address else "on this machine"
        raise CannotTry(
            f"no Ray cluster can be reached {where} ({first_line(error)}); start one with ray start, or set "
            "RAY_AUTH_MODE=token if it asks for a token"
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray's own would end this process without a word
    return ray
