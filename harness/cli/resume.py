"""``harness resume``"""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.options import (
    FOUND,
    FileOptions,
    examples,
    fresh_option,
    interruptible,
    json_option,
    on_option,
    quiet_option,
    script_arguments,
)
from harness.cli.output import Output, echo, say
from harness.errors import CannotTry

if TYPE_CHECKING:
    from harness.spread import On


@click.command(
    short_help="Kill a training script, restart it, and name what it lost.",
    epilog=examples("harness resume train.py --epochs 2", 'harness resume --resume-args "--resume" train.py'),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--kills", type=click.IntRange(min=1), default=2, show_default=True, metavar="N", help="Number of kills.")
@click.option("--every-event", is_flag=True, help="Kill at every file operation of a save, and within each.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Also send SIGTERM, and wait this long for the script to end.",
)
@click.option(
    "--repro",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="With --every-event: write files to DIR that show the first loss without the harness.",
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed for choosing where to kill.")
@click.option("--resume-args", default="", metavar="ARGS", help="Extra arguments for the restarted script.")
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Start the script in N processes with torchrun.",
)
@click.option("-m", "module", is_flag=True, help="SCRIPT is the name of a module, as with python -m.")
@fresh_option
@on_option
@quiet_option
@json_option("Also write the report to this file.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@interruptible
def resume(
    script: str,
    arguments: tuple[str, ...],
    kills: int,
    every_event: bool,
    grace: float | None,
    repro: Path | None,
    seed: int,
    resume_args: str,
    processes: int,
    module: bool,
    fresh: bool,
    on: On,
    json_file: Path | None,
    quiet: bool,
) -> None:
    """Kill your training script, restart it, and name what it lost.

    The script runs in copies of the working directory: twice to its end, then N times until it is killed. Kills come
    within an epoch, during a save, at the end of an epoch, in an accumulation window, or anywhere. After each, the
    script is restarted with the same command. From the first update after the restart, its rows, losses, weights and
    optimizer state must equal the uninterrupted run's, bit for bit.

    With --every-event, the command goes through one save instead. It rebuilds the folder as it is before each file
    operation and half way through each write, and starts the script there. After Ctrl-C, the same command continues.

    Exit status: 0 the script survived every kill, 1 it lost something, 2 it crashed, kept no checkpoint, or differed
    between the two uninterrupted runs.
    """
    out = Output(json_file, quiet)
    out.check()
    arguments = script_arguments(script, arguments, module=module)

    from harness.report import log
    from harness.report.resume import outcome_lines
    from harness.resume.run import resume_script
    from harness.starts.workdir import no_progress

    try:
        more = shlex.split(resume_args)
    except ValueError as error:
        raise CannotTry(f"--resume-args {resume_args!r} cannot be read as a command line: {error}") from error
    report = resume_script(
        script,
        arguments,
        module=module,
        resume_arguments=more,
        count=kills,
        every_event=every_event,
        grace=grace,
        repro=repro,
        seed=seed,
        processes=processes,
        tell=no_progress if quiet else partial(say, err=True),
        on=on,
        hidden=FileOptions(fresh=fresh).hidden(script, arguments, module=module, processes=processes),
    )
    if not quiet or report.failed:
        echo(outcome_lines(report), err=True)
    out.write(json.dumps(report.as_dict(), indent=2), lambda: log.of_resume(report))
    sys.exit(FOUND if report.failed else 0)
