"""Paths outside of a mirror that a script names: they are looked at before and after, whoever writes there."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from harness.put_back import cache_folder
from harness.starts.caches import cache_folders

MOST = 2_000
"""Files of a folder that are looked at."""

QUOTED = re.compile(r"""["'](~?/[^"'\n{}*?]{2,})["']""")
"""A path in a script's text."""

NOT_A_USERS = ("/dev/", "/proc/", "/sys/", "/usr/", "/bin/", "/lib/", "/etc/", "/run/")


def named(script: str, arguments: Sequence[str], folders: Sequence[str]) -> list[str]:
    """The files and folders that a script names by an absolute path: in its text, its arguments, and the variables
    that its text names. Those in ``folders``, which are mirrored, are left out."""
    text = ""
    with suppress(OSError), open(script, encoding="utf-8", errors="replace") as file:
        text = file.read()
    given = [*arguments, *(each.partition("=")[2] for each in arguments), *QUOTED.findall(text)]
    given += [value for name, value in os.environ.items() if re.search(rf"\b{re.escape(name)}\b", text)]
    return list(dict.fromkeys(_outside(given, folders)))


def _outside(given: Iterable[str], folders: Sequence[str]) -> Iterator[str]:
    broad = [os.path.expanduser("~"), tempfile.gettempdir(), os.path.dirname(cache_folder())]
    broad = [os.path.realpath(folder) for folder in broad]
    left_out = (*NOT_A_USERS, *cache_folders())
    for word in given:
        path = os.path.realpath(os.path.expanduser(word)) if word.startswith(("/", "~/")) else ""
        while path not in ("", os.sep) and not os.path.lexists(path):
            path = os.path.dirname(path)
        # What lies above these folders, or holds a whole home, is no folder that a script alone writes to.
        above = any(f"{folder}{os.sep}".startswith(f"{path}{os.sep}") for folder in (*folders, *broad))
        inside = any(path.startswith(f"{folder}{os.sep}") for folder in folders)
        if path not in ("", os.sep) and not above and not inside and not f"{path}{os.sep}".startswith(left_out):
            yield path


def files_in(path: str) -> Iterator[str]:
    """The files at a path: itself, or those of a folder and of the folders in it, up to :data:`MOST`."""
    if not os.path.isdir(path):
        yield path
        return
    every = (os.path.join(below, name) for below, _, names in os.walk(path) for name in names)
    yield from islice(every, MOST)
