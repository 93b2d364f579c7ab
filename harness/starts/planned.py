"""What a view is made of on this machine: an overlay for each file system that may be written to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.starts.view import (
    AS_THEY_ARE,
    NO_LOWER,
    NO_UPPER,
    Layer,
    Plan,
    Refused,
    _like,
    is_below,
    is_privileged,
    remove,
)


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo."""

    point: str
    kind: str
    read_only: bool


def mounts() -> list[Mount]:
    """The mounts of this process, the outer before the inner; of several at one place the last."""
    found: dict[str, Mount] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        point = before.split(" ")[4]
        point = point.encode().decode("unicode_escape").encode("latin-1").decode(errors="surrogateescape")
        options = [*before.split(" ")[5].split(","), *after.split(" ")[2].split(",")]
        found.pop(point, None)
        found[point] = Mount(point, after.split(" ")[0], "ro" in options)
    return sorted(found.values(), key=lambda mount: mount.point.count("/") if mount.point != "/" else 0)


def kind_at(path: str, mounted: Sequence[Mount]) -> str:
    """Kind of the file system that an absolute path without links lies on."""
    return [mount for mount in mounted if is_below(path, mount.point)][-1].kind


def bases(candidates: Iterable[str], mounted: Sequence[Mount]) -> list[str]:
    """The folders, of those given, that can keep what is written: on a disk, and one's own to write to."""
    found: dict[str, None] = {}
    for candidate in candidates:
        path = os.path.realpath(candidate)
        there = path
        while not os.path.isdir(there):
            there = os.path.dirname(there)
        if os.access(there, os.W_OK | os.X_OK) and kind_at(path, mounted) not in NO_UPPER:
            found[path] = None
    return list(found)


def plan(
    name: str, candidates: Iterable[str], through: Iterable[str], wanted: Iterable[str], folders: Iterable[str] = ()
) -> Plan:
    """What a view is made of on this machine; the folders for what is written are made.

    Args:
        name: name of the folder, in the places that keep what is written.
        candidates: those places, the best first.
        through: folders in which writes reach the user's own.
        wanted: folders that the script may write to: the way to each is made, whoever owns the folders above.
        folders: those that it works in, which are kept apart wherever they lie, in shared memory say.

    Raises:
        Refused: no place can keep what is written.
    """
    mounted = mounts()
    places = bases(candidates, mounted)
    if not places:
        raise Refused("no folder on a disk can keep what the script writes")
    made = Plan(os.path.join(places[0], name, "root"))
    try:
        _plan(made, name, places, mounted)
        for folder in folders:
            if folder.split("/")[1] in AS_THEY_ARE:
                _cover(made, folder, name, places, mounted)
        for layer in made.layers:
            _like(layer.lower, layer.upper)
            for path in wanted:
                _way(layer, path)
    except Refused:
        remove(made)
        raise
    except OSError as error:
        remove(made)
        raise Refused(f"{error.filename or name} cannot be made ({error.strerror})") from error
    made.through = [path for path in dict.fromkeys(map(os.path.realpath, through)) if os.path.isdir(path)]
    return made


def _plan(made: Plan, name: str, places: Sequence[str], mounted: Sequence[Mount]) -> None:
    os.makedirs(made.root)
    made.identity = [(found := os.stat(made.root)).st_dev, found.st_ino]
    points = {mount.point: mount for mount in mounted}
    for entry in sorted(os.scandir("/"), key=lambda entry: entry.name):
        if entry.is_symlink() or not entry.is_dir() or entry.name in AS_THEY_ARE or entry.path in points:
            continue
        _cover(made, entry.path, name, places, mounted)
    for mount in mounted:
        if mount.point == "/" or mount.point.split("/")[1] in AS_THEY_ARE or not os.path.lexists(mount.point):
            continue
        if mount.read_only or mount.kind in NO_LOWER or not os.path.isdir(mount.point):
            made.bound.append(mount.point)
        else:
            _cover(made, mount.point, name, places, mounted)


def _cover(made: Plan, folder: str, name: str, places: Sequence[str], mounted: Sequence[Mount]) -> None:
    """Plan an overlay over a folder; or, where the kernel refuses one, over what lies in it."""
    inner = [mount.point for mount in mounted if mount.point != folder and is_below(mount.point, folder)]
    place = next((place for place in places if not is_below(place, folder)), None)
    if place is None or (inner and not is_privileged()):
        if os.access(folder, os.W_OK) and place is None:
            raise Refused(
                f"files written in {folder} must be kept elsewhere, but no other folder on a disk can hold them"
            )
        made.split.append(folder)
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if not entry.is_symlink() and entry.is_dir(follow_symlinks=False) and entry.path not in inner:
                _cover(made, entry.path, name, places, mounted)
        return
    at = os.path.join(place, name, f"{len(made.layers)}")
    for part in ("upper", "work"):
        os.makedirs(os.path.join(at, part))
    made.layers.append(Layer(folder, os.path.join(at, "upper"), os.path.join(at, "work")))


def _way(layer: Layer, path: str) -> None:
    """Make the folders that lead to a path in the upper folder: the kernel cannot make those of other owners."""
    path = os.path.realpath(path)
    if not is_below(path, layer.lower) or is_privileged():
        return
    at, there = layer.lower, layer.upper
    for part in os.path.relpath(path, layer.lower).split("/"):
        at, there = os.path.join(at, part), os.path.join(there, part)
        if not os.path.isdir(at) or part in (".", ".."):
            return
        os.makedirs(there, exist_ok=True)
        _like(at, there)
