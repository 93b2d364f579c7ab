"""What several commands share: options, exit statuses, and how lines are printed."""

from __future__ import annotations

import functools
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import click

from harness import launch
from harness.cli.output import SCRIPTS, Format, say
from harness.documented_run.recipe import DEFAULT_RECIPE, LOOPS, RECIPES, Recipe, load_recipe, with_options
from harness.settings import WatchOptions

FOUND, CANNOT_TRY, CRASHED = 1, 2, 3

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Command], Command]


def examples(*commands: str) -> str:
    """Example commands for the end of a command's help, one per line."""
    # \b keeps click from joining the lines.
    return "\n".join(("\b", "Examples:", *(f"  {command}" for command in commands)))


SOURCE_OPTIONS = (
    click.option(
        "--recipe",
        metavar="NAME|FILE.py:OBJECT",
        help=f"What to train: {', '.join(RECIPES)}, or a recipe of your own. [default: {DEFAULT_RECIPE}]",
    ),
    click.option(
        "--data",
        metavar="DIR",
        help="Read the corpus from this folder. [env: HARNESS_DATA, for recipes that are not built in]",
    ),
    click.option("--checkpoint", metavar="DIR|NAME", help="Start from this checkpoint."),
)
RECIPE_OPTIONS = (
    *SOURCE_OPTIONS,
    click.option("--loop", type=click.Choice(LOOPS), help="Which documented loop to train with."),
    click.option(
        "--processes",
        type=click.IntRange(min=1),
        metavar="N",
        help="Train in N processes, one per GPU or all on CPUs; needs --loop accelerate. [default: the launcher's]",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=1),
        default=launch.PATIENCE,
        show_default=True,
        metavar="SECONDS",
        help="With several processes, end the run when one of them hangs this long.",
    ),
    click.option(
        "--seed", type=click.IntRange(min=0, max=2**32 - 1), help="Seed of the new head, dropout and shuffling."
    ),
)


def _all(options: Sequence[Option[Any]]) -> Option[Any]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


processes_option = click.option(
    "--processes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Start the script in N processes on CPUs, as torchrun does; 1 also sets what a launcher sets.",
)


def in_processes(
    command: str, words: Sequence[str], script: Sequence[str], processes: int, files: FileOptions, *, module: bool
) -> int:
    """The exit status of the first of several ranks that run one of our commands together, in one directory.

    Raises:
        click.UsageError: this is a rank of another launcher.
    """
    if launch.world_size() is not None:
        raise click.UsageError("--processes starts the ranks itself: call it without a launcher.")
    words = ["-m", "harness", command, *words, *replace(files, fresh=False).words()]
    if files.in_place:
        return launch.command_in_processes([*words, *script], processes=processes)

    from harness.starts.isolated import folders_of, shared

    hidden = files.hidden(script[0], script[1:], module=module, processes=processes)
    with shared(folders_of(script[0], module=module)) as directory, directory.entered():
        directory.hide(hidden)
        given = [directory.inside(each, directory.folders) for each in script]
        return launch.command_in_processes([*words, *given], processes=processes)


@dataclass(frozen=True)
class FileOptions:
    """Where a script runs, and what becomes of the files that it writes."""

    in_place: bool = False
    keep: Path | None = None
    fresh: bool = False

    def hidden(
        self, script: str, arguments: Sequence[str], *, module: bool = False, processes: int = 1
    ) -> tuple[str, ...]:
        """Patterns of the files that the script is not to see."""
        if not self.fresh or "HARNESS_AGAIN" in os.environ:  # of a script that starts itself anew it is done
            return ()
        from harness.starts.fresh import own_checkpoints
        from harness.starts.workdir import Command

        return own_checkpoints(Command(script, tuple(arguments), module, processes))

    def how(self, script: str, arguments: Sequence[str], *, module: bool = False) -> dict[str, Any]:
        """What :func:`harness.starts.apart.run` is given."""
        hidden = self.hidden(script, arguments, module=module)
        return {"module": module, "in_place": self.in_place, "keep": self.keep, "hidden": hidden}

    def words(self) -> list[str]:
        """The options as a command line has them, in whatever folder."""
        keep = [f"--keep={self.keep.absolute()}"] if self.keep is not None else []
        return ["--in-place"] * self.in_place + keep + ["--fresh"] * self.fresh


def say_what_runs(script: str, files: FileOptions, *, shortened: bool, quiet: bool) -> None:
    """Say on a terminal what is about to run, and how long it may take."""
    if quiet or not launch.is_main_process() or not sys.stderr.isatty():
        return
    where = "in place" if files.in_place else "isolated from your files"
    takes = "long epochs are cut" if shortened else "it takes as long as without the harness"
    tries = "; first up to 8 starts, each up to the first update" if files.fresh else ""
    say(f"harness: {script} runs {where}: {takes}{tries}; Ctrl-C ends it and shows what was found so far", err=True)


fresh_option = click.option(
    "--fresh", is_flag=True, help="Hide the checkpoints that the script saved and would continue from."
)

_FILES = (
    click.option("--in-place", is_flag=True, help="Run the script in place: what it writes overwrites your files."),
    click.option(
        "--keep",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="Move what the script wrote to this folder. By default, it is removed.",
    ),
    fresh_option,
)


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where the script runs, given to the command as ``files``."""

    @functools.wraps(command)
    def run(*, in_place: bool, keep: Path | None, fresh: bool, **given: Any) -> Any:
        if in_place and (keep or fresh):
            raise click.UsageError("--keep and --fresh need the script's own directory: leave --in-place out.")
        return command(files=FileOptions(in_place, keep, fresh), **given)

    return cast("Callable[..., Any]", _all(_FILES)(run))


source_options = _all(SOURCE_OPTIONS)
"""Where data and checkpoint come from."""

recipe_options = _all(RECIPE_OPTIONS)
"""What to train, and how long a process may hang. :func:`chosen_recipe` takes all of them but the timeout."""

baselines_option = click.option(
    "--baselines",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder of the baselines. [default: baselines, then those shipped with the package]",
)


on_option = click.option(
    "--on",
    type=click.Choice(("here", "ray")),
    default="here",
    show_default=True,
    help="Run on this machine, one after another, or on a Ray cluster (docs/many-machines.md).",
)


_WATCH = (
    click.option("--updates", type=click.IntRange(min=1), metavar="N", help="Stop the script after N updates."),
    click.option("--full", is_flag=True, help="Complete every pass over a DataLoader; by default, long ones are cut."),
    click.option("--no-reload", is_flag=True, help="Do not reload what the script saved."),
    click.option("-m", "module", is_flag=True, help="SCRIPT is the name of a module, as with python -m."),
)


def watch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How a script is watched, given to the command as ``options``; ``--select`` and ``--ignore`` where it has them."""

    @functools.wraps(command)
    def run(*, no_reload: bool, **given: Any) -> Any:
        watch = {each.name: given.pop(each.name) for each in fields(WatchOptions) if each.name in given}
        return command(options=WatchOptions(**watch, reload=not no_reload), **given)

    return cast("Callable[..., Any]", _all(_WATCH)(run))


def baseline_folders(given: Path | None) -> tuple[Path, Path | None]:
    """The folder of ``--baselines``, and where else a baseline is looked for: nowhere, if one was given."""
    from harness.documented_run.baseline.files import FOLDER, shipped_folder

    return (given, None) if given else (FOLDER, shipped_folder())


def json_option(help_: str) -> Option[Any]:
    file = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
    says = f"{help_} Without FILE, or with -, it goes to stdout and everything else to stderr."
    return click.option("--json", "json_file", type=file, is_flag=False, flag_value="-", metavar="[FILE]", help=says)


format_option = click.option(
    "--format",
    "format_",
    type=click.Choice(get_args(Format)),
    default="text",
    show_default=True,
    help="The format of stdout. With json, github (workflow commands) or sarif, everything else goes to stderr.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print only findings.")
verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="List every check, also those with nothing to report."
)


def chosen_recipe(recipe: str | None, **options: Any) -> Recipe:
    """The recipe that the options name, with the other options put in.

    Raises:
        CannotTry: there is no such recipe, or a value is one that no run can have.
    """
    return with_options(load_recipe(recipe or DEFAULT_RECIPE), launched=launch.world_size(), **options)


def run_folder(name: str) -> Path:
    """Where a run is kept, if nobody says: no two of them, not in the same second either."""
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"


def folder_of(recipe: Recipe) -> Path:
    return run_folder(f"{recipe.name}-{recipe.loop}-{recipe.seed}")


def interruptible(command: Command) -> Command:
    """SIGTERM, which schedulers and CI send, ends a command as Ctrl-C does: what there is so far is kept."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        with launch.interrupted_once(launch.interrupting()):
            return command(*arguments, **options)

    return run  # type: ignore[return-value]


STRICT_PARSERS = re.compile(
    r"\b(parse_args|parse_args_into_dataclasses|parse_args_and_config|HfArgumentParser|TrlParser|LightningCLI|hydra|fire|"
    r"tyro|typer|click|absl|jsonargparse|simple_parsing|docopt)\b"
)
"""What refuses an option that it does not know, so that no option of ours gets lost in it."""

TRAINS = re.compile(
    r"^\s*(import|from)\s+(torch|transformers|accelerate|lightning|pytorch_lightning|trl|peft|ignite|sentence_transformers)\b"
    r"|^if __name__ ==",
    re.MULTILINE,
)
"""What a script has that can be started itself, and a file of settings has not."""


def script_arguments(script: str, arguments: tuple[str, ...], *, module: bool = False) -> tuple[str, ...]:
    """The arguments of the script: what follows SCRIPT, or ``--`` after SCRIPT, as it is.

    Without ``--``, an option of this command and a second script are refused: the script would get them, unless it
    names them itself or parses its arguments strictly.

    Raises:
        click.UsageError: names the argument and both ways to write it.
    """
    if arguments[:1] == ("--",):
        return arguments[1:]
    context = click.get_current_context()
    ours = {name for each in context.command.params if isinstance(each, click.Option) for name in each.opts}
    command, text = context.command_path, _text_of(script, module)
    for argument in arguments:
        option = argument.partition("=")[0]
        if option in ours and not _is_known(option, text):
            raise click.UsageError(
                f"{argument} comes after {script}, which does not mention it. If it is for harness, write: {command} "
                f"{option} … {script}; if it is for the script: {command} {script} -- {argument} …"
            )
        if (
            Path(argument).suffix in SCRIPTS
            and Path(argument).is_file()
            and TRAINS.search(_text_of(argument, module=False))
        ):
            raise click.UsageError(
                f"{argument} comes after {script}, which would get it as an argument; {command} runs one script. "
                f"Call it again for {argument}, or list both under scripts in [tool.harness]. If {script} does read "
                f"{argument}, write: {command} {script} -- {shlex.join(arguments)}"
            )
    return arguments


def _text_of(script: str, module: bool) -> str:
    """What a script's file says; nothing where it is not found."""
    path = Path(*script.split(".")) if module else Path(script)
    for file in (path, path / "__main__.py", Path(f"{path}.py")):
        with suppress(OSError):
            if not file.is_file():  # to open a named pipe waits for somebody who writes
                continue
            return file.read_text(encoding="utf-8", errors="replace")
    return ""


def _is_known(option: str, text: str) -> bool:
    """Whether a script names the option, as ``--lr``, "lr" or the field ``lr:``, or refuses those that are unknown."""
    word = re.escape(option.strip("-")).replace(r"\-", "[-_]")
    named = re.search(rf"""["'\s\[|]{re.escape(option)}\b|["']{word}["']|^\s*{word}\s*:""", text, re.MULTILINE)
    return bool(named or STRICT_PARSERS.search(text))


def complete_checks(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Checks and families, for the shell's completion; the last of several by comma."""
    from harness import catalogue

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in catalogue.names() if name.startswith(last)]


def complete_faults(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Checks, losses, causes and their families, for the shell's completion."""
    from harness import catalogue

    return [name for name in catalogue.names(checks_only=False) if name.startswith(incomplete)]


def checks_option(name: str, says: str) -> Option[Command]:
    """An option that takes ids of checks or families, several by comma or by giving it again."""

    def split(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
        found = tuple(each.strip() for ids in given for each in ids.split(",") if each.strip())
        if given and not found:
            raise click.BadParameter("it names no check; harness explain lists all ids.")
        return found

    return click.option(name, metavar="IDS", multiple=True, callback=split, shell_complete=complete_checks, help=says)
