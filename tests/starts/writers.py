"""A script that trains for two updates, and writes in every way that it is told to: ``writers.py FOLDER NAME…``.

Each writer changes, makes or removes what lies in the folder, which :func:`tests.starts.trees.tree` has made.
"""

from __future__ import annotations

import atexit
import ctypes
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

WRITERS: dict[str, Callable[[Path], object]] = {}
LATE = ("exit handlers", "daemon threads")
PROGRAMS = ("shell", "git", "spawn", "forkserver", "subprocess", "posix_spawn", "detached", "chmod by a program")
UNHEARD = ("libc",)


def writes(name: str) -> Callable[[Callable[[Path], object]], Callable[[Path], object]]:
    def put(writer: Callable[[Path], object]) -> Callable[[Path], object]:
        WRITERS[name] = writer
        return writer

    return put


writes("write")(lambda at: (at / "a").write_text("another"))
writes("append")(lambda at: (at / "a").open("a").write("more"))
writes("make")(lambda at: (at / "new").write_text("new"))
writes("remove")(lambda at: (at / "a").unlink())
writes("remove a tree")(lambda at: shutil.rmtree(at / "d"))
writes("rename")(lambda at: (at / "a").rename(at / "b"))
writes("rename a folder")(lambda at: (at / "d").rename(at / "moved"))
writes("truncate")(lambda at: os.truncate(at / "a", 0))
writes("mode")(lambda at: (at / "a").chmod(0o600))
writes("attribute")(lambda at: os.setxattr(at / "a", "user.note", b"of the run"))
writes("times")(lambda at: os.utime(at / "a", (1, 1)))
writes("link")(lambda at: (at / "symbolic").symlink_to("a"))
writes("hard link")(lambda at: os.link(at / "a", at / "hard"))
writes("through a link")(lambda at: (at / "link").write_text("another"))
writes("one of two names")(lambda at: (at / "b").write_text("another"))
writes("copy")(lambda at: shutil.copy2(at / "b", at / "a"))
writes("long name")(lambda at: (at / ("x" * 250)).write_text("another"))
writes("temporary file")(lambda at: os.replace(tempfile.mkstemp(dir=at)[1], at / "a"))
writes("fifo")(lambda at: os.mkfifo(at / "fifo"))


@writes("replace")
def replace(at: Path) -> None:
    (at / ".new").write_text("new")
    os.replace(at / ".new", at / "a")


@writes("open folder")
def open_folder(at: Path) -> None:
    folder = os.open(at, os.O_RDONLY)
    os.close(os.open("a", os.O_WRONLY | os.O_TRUNC, dir_fd=folder))
    os.close(folder)


@writes("opener")
def opener(at: Path) -> None:
    folder = os.open(at, os.O_RDONLY)
    with open("a", "w", opener=lambda path, flags: os.open(path, flags, dir_fd=folder)) as file:
        file.write("another")


@writes("descriptor")
def descriptor(at: Path) -> None:
    with (at / "a").open() as file:
        os.fchmod(file.fileno(), 0o600)
        os.utime(file.fileno(), (1, 1))


@writes("sqlite")
def sqlite(at: Path) -> None:
    path = at / "my runs.db"
    for given, uri in ((str(at / "runs.db"), False), (path.absolute().as_uri(), True)):
        connection = sqlite3.connect(given, uri=uri)
        connection.execute("create table if not exists u (x)")
        connection.commit()
        connection.close()


@writes("fork")
def fork(at: Path) -> None:
    if not os.fork():
        (at / "a").write_text("another")
        os._exit(0)
    os.wait()


@writes("torch")
def save(at: Path) -> None:
    import torch

    torch.save({"a": torch.zeros(2)}, at / "a")
    torch.jit.save(torch.jit.trace(lambda x: x + 1, torch.zeros(2)), str(at / "b"))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.zeros(2).add(1)
    profile.export_chrome_trace(str(at / "trace.json"))
    torch.from_file(str(at / "mapped"), shared=True, size=4, dtype=torch.uint8).fill_(7)


@writes("libraries")
def libraries(at: Path) -> None:
    import numpy as np
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
    import torch
    from safetensors.torch import save_file

    np.save(at / "new.npy", np.zeros(2))
    mapped = np.memmap(at / "d" / "e", dtype="u1", mode="r+", shape=(1,))
    mapped[:] = 7
    mapped.flush()
    pd.DataFrame({"x": [1]}).to_parquet(at / "a")
    pq.write_table(pa.table({"x": [1]}), str(at / "b"))
    save_file({"a": torch.zeros(2)}, str(at / "new.safetensors"))


@writes("shell")
def shell(at: Path) -> None:
    os.system(f"echo more >> '{at}/a'; rm -f '{at}/b'")


@writes("subprocess")
def sub(at: Path) -> None:
    subprocess.run(["sh", "-c", 'echo more >> "$0"/a', str(at)], check=False)


@writes("posix_spawn")
def posix(at: Path) -> None:
    os.waitpid(os.posix_spawn("/bin/rm", ["rm", "-rf", str(at / "d")], os.environ), 0)


@writes("chmod by a program")
def changes_mode(at: Path) -> None:
    subprocess.run(["chmod", "600", str(at / "a")], check=False)


@writes("detached")
def detached(at: Path) -> None:
    subprocess.Popen(["sh", "-c", 'sleep 3; echo late >> "$0"/a', str(at)], start_new_session=True)


@writes("git")
def git(at: Path) -> None:
    words = ["git", "-C", str(at), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*words, "add", "-A"], check=False)
    subprocess.run([*words, "commit", "--quiet", "--message", "auto"], check=False)


def _child(path: str) -> None:
    Path(path).write_text("another")


@writes("spawn")
def spawn(at: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_child, args=(str(at / "a"),))
    process.start()
    process.join()


@writes("forkserver")
def forkserver(at: Path) -> None:
    process = multiprocessing.get_context("forkserver").Process(target=_child, args=(str(at / "a"),))
    process.start()
    process.join()


class _Closes:
    pass


@writes("exit handlers")
def exits(at: Path) -> None:
    atexit.register((at / "a").write_text, "another")
    kept.append(_Closes())
    weakref.finalize(kept[-1], (at / "b").write_text, "another")


kept: list[_Closes] = []


@writes("daemon threads")
def threads(at: Path) -> None:
    def forever() -> None:
        while True:
            with suppress(OSError):
                (at / "a").write_text("another")
            time.sleep(0.0005)

    threading.Thread(target=forever, daemon=True).start()


@writes("libc")
def libc(at: Path) -> None:
    library = ctypes.CDLL(None)
    number = library.open(os.fsencode(at / "a"), os.O_WRONLY | os.O_TRUNC)
    library.write(number, b"another", 7)
    library.close(number)


def main(folder: str, *names: str) -> None:
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
    for name in names:
        try:
            WRITERS[name](Path(folder))
        except OSError as error:
            print(f"{name}: {error}")
    print("all was written")


if __name__ == "__main__":
    main(*sys.argv[1:])
