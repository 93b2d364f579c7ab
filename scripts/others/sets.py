"""The sets that are known by name: where their programs are, and what makes of them a folder as docs/sets.md says.

Nothing of them is kept here but the expectations, ``NAME.toml``: a manifest whose ``digest`` says which programs they
are about. Their data is made up, and what else they import and is not there is stood in for (``stubs``).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

from harness.errors import CannotTry
from scripts.expectations import Manifest, Program
from scripts.others.pysiassist import pysiassist

HERE = Path(__file__).parent
PROGRAMS = "programs"

LayOut = Callable[[Path, Path, Manifest], None]
"""Writes the programs of a copy of the repository into a folder, with the data that they read."""


def pulseml(source: Path, folder: Path, manifest: Manifest) -> None:
    """A program a family, of the template and the fault that the set's own module puts into it."""
    spec = importlib.util.spec_from_file_location("projects", source / "benchmarks" / "projects.py")
    assert spec is not None
    assert spec.loader is not None
    projects: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(projects)
    for program in manifest.program:
        text = projects.script_for(program.id, program.id)
        (folder / program.files[0]).write_text(text, encoding="utf-8")
    (folder / "checkpoints").mkdir()
    (folder / "data").mkdir()
    drawn = numpy.random.default_rng(7)
    patterns = drawn.normal(size=(10, 256))
    for split, rows in (("train", 1024), ("val", 256)):
        labels = drawn.integers(0, 10, rows)
        inputs = patterns[labels] * 0.12 + drawn.normal(size=(rows, 256))
        numpy.savez(folder / "data" / f"{split}.npz", inputs=inputs.astype("float32"), labels=labels)


def ml_debug_agent(source: Path, folder: Path, manifest: Manifest) -> None:
    """The one training script, which is told by an argument which bug to have, and the package that it imports."""
    package = source / "src" / "ml_debug_agent"
    shutil.copytree(package, folder / PROGRAMS / "ml_debug_agent")
    for program in manifest.program:
        shutil.copy(package / "training" / "train.py", folder / program.files[0])


def traincheck(source: Path, folder: Path, manifest: Manifest) -> None:
    """The reproductions of silent issues and the workloads for false alarms that train on a CPU, as for a CPU."""
    for program in manifest.program:
        for file in program.files:
            where = (
                "silent-issue-detection/bug-reprod-scripts"
                if "_bug" in file.stem or program.bug
                else "fp_rate/workloads"
            )
            name = file.stem.removesuffix("_bug").removesuffix("_right")
            inner = {"_bug": "bug", "_right": "fixed"}.get(file.stem[len(name) :], "main")
            text = (source / where / name / f"{inner}.py").read_text(encoding="utf-8")
            text = text.replace(".cuda()", "").replace("np.Inf", "np.inf")
            text = re.sub(r"device=(['\"])cuda\1", 'device="cpu"', text)
            (folder / file).write_text(text, encoding="utf-8")


def emse(source: Path, folder: Path, manifest: Manifest) -> None:
    """The reproductions whose bug is silent, as they are."""
    for program in manifest.program:
        shutil.copy(source / "Bugs" / program.id / "main.py", folder / program.files[0])


SETS: dict[str, LayOut] = {
    "pulseml": pulseml,
    "ml-debug-agent": ml_debug_agent,
    "traincheck": traincheck,
    "emse": emse,
    "pysiassist": pysiassist,
}


def expectations(name: str) -> Manifest:
    """What is expected of a set that is known by name."""
    return Manifest.read(HERE / f"{name}.toml")


def bring(name: str, work: Path) -> Path:
    """A copy of the set's repository at the commit that the expectations are about.

    Raises:
        CannotTry: it could not be brought.
    """
    known = expectations(name).set
    copy = work / f"{name}-source"
    if not copy.exists():
        commands = (
            ["git", "clone", "--quiet", str(known.address), str(copy)],
            ["git", "-C", str(copy), "checkout", "--quiet", str(known.commit)],
        )
        environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}  # a repository that is gone asks for no password
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, env=environment)  # noqa: S603
            if done.returncode:
                shutil.rmtree(copy, ignore_errors=True)
                said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
                raise CannotTry(
                    f"{name} needs a copy of {known.address} at commit {known.commit}, and git could not bring it "
                    f"({said}); name a folder that has one with --from"
                )
    return copy


def laid_out(name: str, source: Path, work: Path) -> Path:
    """The set as a folder with a manifest.

    Raises:
        CannotTry: the copy has not the files of the set, or they are other ones than the expectations are about.
    """
    manifest = expectations(name)
    folder = work / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / PROGRAMS).mkdir(parents=True)
    try:
        SETS[name](source, folder, manifest)
    except (OSError, AttributeError) as error:
        known = manifest.set
        raise CannotTry(
            f"{source} is no copy of {known.address} at commit {known.commit}, which {name} needs: {error}"
        ) from error
    found = digest_of(folder, manifest.program)
    if manifest.set.digest not in (None, found):
        raise CannotTry(
            f"the programs in {source} are not those that the expectations of {name} are about: expected the digest "
            f"{manifest.set.digest}, found {found}; check out {manifest.set.commit}"
        )
    for each in manifest.set.beside:
        (folder / each).mkdir(exist_ok=True)
    shutil.copytree(HERE / "stubs", folder / PROGRAMS, dirs_exist_ok=True)
    shutil.copy(HERE / f"{name}.toml", folder / "manifest.toml")
    return folder


def digest_of(folder: Path, programs: list[Program]) -> str:
    """Of the programs' files, by name."""
    whole = hashlib.sha256()
    for file in sorted({str(file) for program in programs for file in program.files}):
        whole.update(file.encode() + b"\0" + (folder / file).read_bytes() + b"\0")
    return whole.hexdigest()[:16]
