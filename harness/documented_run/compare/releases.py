"""Other releases of a library: which there are, and environments that have one of them and all else as it is here.

An environment is a virtual one on top of this one: what it has of its own is the release, and what of its requirements
this one does not meet. It is kept (``$XDG_CACHE_HOME/full-training-harness``), so that it is installed once.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.version import InvalidVersion, Version

from harness.errors import CannotTry
from harness.files import no_space

SPAN = re.compile(r"(?P<package>[\w.-]+?)=(?P<first>[^=]+?)\.\.(?P<last>[^=]+)")


class CannotInstall(Exception):
    """A release that cannot be had here, and why."""


@dataclass(frozen=True)
class ReleaseSpan:
    """Releases of one library, from one to another."""

    package: str
    first: Version
    last: Version

    @classmethod
    def parse(cls, text: str) -> ReleaseSpan:
        """What ``PACKAGE=FIRST..LAST`` says.

        Raises:
            CannotTry: it says something else, or the last release comes before the first.
        """
        found = SPAN.fullmatch(text)
        try:
            if found is None:
                raise InvalidVersion
            span = cls(found["package"], Version(found["first"]), Version(found["last"]))
        except InvalidVersion as error:
            raise CannotTry(f"{text!r}: expected PACKAGE=FIRST..LAST, as in transformers=4.57.6..5.23.0") from error
        if span.first >= span.last:
            raise CannotTry(f"{text!r}: expected two releases, the earlier one first")
        return span

    def __contains__(self, version: Version) -> bool:
        return self.first <= version <= self.last and not version.is_prerelease


@dataclass(frozen=True)
class Environments:
    """Environments with one release each of a library; ``tell`` gets a line for each that is installed."""

    package: str
    tell: Callable[[str], None]

    def releases(self, span: ReleaseSpan) -> list[Version]:
        """Releases that pip offers, in order, both ends included; without an answer of pip, the ones installed before.

        Raises:
            CannotTry: there are none between which to look.
        """
        known = {version for version in (*self._listed(), *self._installed()) if version in span}
        if not known:
            raise CannotTry(
                f"pip finds no release of {self.package} from {span.first} to {span.last}, and none is installed in "
                f"{_folder()}; check the name and the network"
            )
        return sorted({*known, span.first, span.last})

    def _listed(self) -> list[Version]:
        done = _run([sys.executable, "-m", "pip", "index", "versions", self.package])
        found = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
        return [Version(each.strip()) for each in found[1].split(",")] if found else []

    def _installed(self) -> list[Version]:
        beginning = f"{_normalized(self.package)}-"
        found = [path.name.removeprefix(beginning) for path in _folder().glob(f"{beginning}*-{_here()}")]
        return [Version(name.removesuffix(f"-{_here()}")) for name in found]

    def python(self, version: Version) -> str:
        """The interpreter of an environment with this release, which is installed where it is not yet.

        Raises:
            CannotInstall: pip says so.
            CannotTry: the disk is full, or the folder of the environments cannot be written.
        """
        with suppress(metadata.PackageNotFoundError):
            if Version(metadata.version(self.package)) == version:
                return sys.executable
        folder = _folder() / f"{_normalized(self.package)}-{version}-{_here()}"
        if not folder.exists():
            self.tell(f"installing {self.package} {version}")
            self._install(version, folder)
        return str(folder / "bin" / "python")

    def _install(self, version: Version, folder: Path) -> None:
        unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
        try:
            venv.create(unfinished, symlinks=True)
            site = next(unfinished.glob("lib/python*/site-packages"))
            paths = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
            # As a line that is executed, so that the .pth files in there count too (packages that are being edited).
            lines = [f"import site; site.addsitedir({path!r})" for path in paths]
            (site / "beneath.pth").write_text("\n".join(lines) + "\n")
            command = [str(unfinished / "bin" / "python"), "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
            done = _run([*command, f"{self.package}=={version}"])
            if done.returncode:
                raise CannotInstall(_last_error(done.stderr))
            os.replace(unfinished, folder)
        except OSError as error:
            if not folder.exists():  # another process may have been quicker
                raise CannotTry(
                    f"{folder} cannot be installed ({no_space(error) or error}); XDG_CACHE_HOME names another folder"
                ) from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)  # noqa: S603 - pip


def _last_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["pip failed without a message"])[-1]


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "full-training-harness" / "environments"


@cache
def _here() -> str:
    """This environment, by its place and the versions in it: on another one other requirements are met."""
    installed = sorted(f"{each.name}=={each.version}" for each in metadata.distributions())
    return hashlib.sha256(f"{sys.prefix} {installed}".encode()).hexdigest()[:8]


def _normalized(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()
