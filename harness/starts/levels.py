"""Levels of isolation: which of them is in force on this machine, and why no better one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Literal

from harness.errors import CannotTry
from harness.starts.view import refused_because as cannot_be

Level = Literal["overlay", "mirror", "guard"]
"""What keeps the user's files: the kernel; a mirror, with Landlock for programs; or a mirror alone."""

LEVELS: tuple[Level, ...] = ("overlay", "mirror", "guard")

MEANS: Mapping[Level, str] = {
    "overlay": "the kernel gives each script a private view of the file system",
    "mirror": "a mirror of the working directory; programs may write only there (Landlock)",
    "guard": "a mirror of the working directory; changes made by programs are not prevented",
}

VARIABLE = "HARNESS_ISOLATION"
"""The environment variable that asks for a level."""


def asked_for() -> Level | None:
    """The level that :data:`VARIABLE` asks for.

    Raises:
        CannotTry: there is none of that name, or this machine does not have it.
    """
    given = os.environ.get(VARIABLE) or None
    if given is None:
        return None
    level: Level | None = next((level for level in LEVELS if level == given), None)
    if level is None:
        raise CannotTry(f"{VARIABLE} is {given!r}; expected one of {', '.join(LEVELS)}")
    if (why := why_not(level)) is not None:
        raise CannotTry(f"{VARIABLE} asks for {level}, which this machine does not allow: {why}")
    return level


def chosen(*, tried: bool = True) -> Level:
    """The level of what is started now: the one that is asked for, or the best that there is.

    Args:
        tried: whether a view is tried before; who does without, goes on where the kernel refuses one.
    """
    if (given := asked_for()) is not None:
        return given
    if not tried and cannot_be() is None:
        return "overlay"
    return next(level for level in LEVELS if why_not(level) is None)


def mirror_level() -> Level:
    """The best level for a script that runs in this process itself, which cannot be given a view of its own."""
    given = os.environ.get(VARIABLE)
    return "guard" if given == "guard" or why_not("mirror") is not None else "mirror"


def why_not(level: Level) -> str | None:
    """Why this machine does not have a level; None where it does."""
    if level == "overlay":
        from harness.starts.overlay import refused_because

        return refused_because()
    if level == "mirror":
        from harness.starts.fence import refused_because as no_fence

        return no_fence()
    return None


def better() -> str:
    """The one line that gets a private view of the file system on this machine."""
    if sys.platform != "linux":
        return (
            "run the command on Linux, for example in a virtual machine: only Linux has private views of the "
            "file system"
        )
    restricted = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
    try:
        with open(restricted) as file:
            if file.read().strip() == "1":
                return "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0  (Ubuntu restricts user namespaces)"
    except OSError:
        pass
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        return "docker run --cap-add SYS_ADMIN --security-opt apparmor=unconfined --volume /var/tmp …"
    return "sudo sysctl user.max_user_namespaces=10000  (and kernel.unprivileged_userns_clone=1 on Debian)"
