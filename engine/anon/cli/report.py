"""`anon report` and `anon explain`: render the page of a run again, and explain its release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anon.cli.command import NO_PROGRESS, NO_WARNINGS, CommonFlags, command
from anon.cli.options import Memory, RunFolder, Threads


@command(
    "Example: `anon report release-run --out page.html`",
    show_values="Require that the page shows data values: exit 2 if the run was made without --show-values.",
    strict=NO_WARNINGS,
    log_json=NO_PROGRESS,
)
def report(
    flags: CommonFlags,
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; by default report.html in the run folder.", metavar="FILE")
    ] = None,
) -> int:
    """Render the page of a run again, from its report.json alone.

    The page is one file that needs no network. It shows data values only if the run was made with --show-values.
    """
    from anon.report.page import write

    flags.show(write(run, out, flags.show_values), "terminal.show_page")
    return 0


@command(
    "Example: `anon explain release-run`",
    show_values="Show data values in error messages; results show them if the run was made with --show-values.",
    strict=NO_WARNINGS,
)
def explain(flags: CommonFlags, run: RunFolder, memory: Memory = None, threads: Threads = None) -> int:
    """Explain why a run came to its release: how close each criterion is, what each column lost.

    Names the criterion that binds, and the groups that it keeps from being split. For the lattice method, lists every
    combination of levels that is safe while none below it is, and what refuses one level less. If the source is
    unchanged and has at most 2 million rows, the search is repeated with looser criteria, to measure what relaxing each
    would gain.
    """
    from anon.commands.explain import explain as explanation_of
    from anon.runs.options import Options

    with flags.progress() as progress:
        explanation = explanation_of(run, Options.from_user(memory=memory, threads=threads), progress)
    flags.show(explanation, "terminal_explanation.show_explanation")
    return 0
