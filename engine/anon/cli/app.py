"""The command line: options, exit codes, where output goes. Results go to stdout, messages and progress to stderr."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anon.cli.hierarchy import hierarchy_app
from anon.cli.init import init
from anon.cli.options import Commands, Debug, Json, LogJson, ShowValues, Strict, guarded
from anon.cli.options import telling as _progress
from anon.core.terminal import one_line, say, say_json

if TYPE_CHECKING:
    from anon.core.progress import Progress
    from anon.runs.options import Options
    from anon.runs.result import Result

app = typer.Typer(
    cls=Commands,
    help="Anonymize tables about people: a release that a stated adversary cannot break, written and verified.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done or safe, 2 usage or config, 3 not safe, 4 verification failed, 5 source or backend, "
    "6 memory or disk, 130 interrupted.",
)
app.add_typer(hierarchy_app, name="hierarchy")


def _tell_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        say(f"anon {version('anon-engine')}")
        raise typer.Exit


@app.callback()
def _before_any_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="The version, and nothing else.")
    ] = False,
) -> None:
    pass


app.command(epilog="Example: `anon init extract.csv --individual row --sensitive diagnosis --yes --out c.yaml`")(init)

Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Memory of the whole process, e.g. 1GB; overrides limits.memory. At least 400MB."
    ),
]
Threads = Annotated[int | None, typer.Option(min=1, max=1_024, metavar="N", help="Threads; overrides limits.threads.")]
Grouped = Annotated[
    str, typer.Option("--on", metavar="TABLE", help="The table: Parquet, CSV, a folder of either, or a glob.")
]
Sensitive = Annotated[
    str | None, typer.Option(help="The sensitive column to look at, where the config has several.", metavar="COLUMN")
]
ConfigFile = Annotated[Path, typer.Argument(help="The config, a YAML file (see `anon schema`).", metavar="CONFIG")]


def _options(memory: str | None, **options: Any) -> Options:
    from anon.runs.options import Options

    return Options.from_user(memory=memory, **options)


def _show(told: dict[str, Any], as_json: bool, way: str, *more: Any, module: str = "words") -> None:
    """Prints facts: as one JSON object, or in words, by a function of a module of report that may need to know more."""
    if as_json:
        say_json(told)
        return
    from importlib import import_module

    from rich.console import Console

    getattr(import_module(f"anon.report.{module}"), way)(Console(), *one_line([told, *more]))


def _show_result(result: Result, as_json: bool) -> None:
    _show(result.to_dict(), as_json, "show", result.report, result.places)


def _show_risk(result: Result, as_json: bool, strict: bool, way: str, progress: Progress) -> int:
    """Prints what was found in a table; the exit code."""
    _show(result.to_dict(), as_json, way, module="words_risk")
    return _strictly(result.facts, strict, progress)


def _strictly(told: dict[str, Any], strict: bool, progress: Progress) -> int:
    """With --strict says what the warnings are and that they count; the exit code."""
    from anon.errors import UnsafeError
    from anon.runs.result import refuse_warnings

    try:
        if strict:
            refuse_warnings(told)
    except UnsafeError as error:
        progress.failed(error)
        if not error.reported:
            say(f"error: {error}", err=True)
        return error.exit_code
    return 0


@app.command()
def run(
    config: ConfigFile,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to write; overrides release.path, and release.run with -run added."),
    ] = None,
    memory: Memory = None,
    threads: Threads = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from where a run of the same config and source was stopped.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the release of an earlier run, in one step.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Make a release of the same source and config again, and replace it.")
    ] = False,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="A trial on this share of the individuals, e.g. 1%, beside the release and never as it.",
        ),
    ] = None,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """The main job: from the config's source to a verified release.

    If the release that is there was made from the same source by the same config, nothing is done. Nothing can be seen
    at release.path before the written files have passed verification. A run that is stopped leaves a checkpoint, from
    which --resume goes on and ends with the same bytes; a start without it begins anew. Only the method partition keeps
    one; others begin their search again.
    """

    def work() -> int:
        from anon import pipeline

        with _progress(as_json, log_json) as progress:
            options = _options(
                memory, out=out, threads=threads, resume=resume, overwrite=overwrite, force=force, sample=sample,
                show_values=show_values, strict=strict,
            )  # fmt: skip
            result = pipeline.run(config, None, options, progress)
        _show_result(result, as_json)
        return 0

    guarded(work, as_json, debug, show_values)


@app.command()
def check(
    config: ConfigFile,
    on: Grouped,
    prior: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A prior file that stands in for those of r_robustness.")
    ] = None,
    save_priors: Annotated[
        Path | None,
        typer.Option(help="A folder for the estimated priors: prior-N.csv, which --prior reads.", metavar="DIR"),
    ] = None,
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """Checks the config's criteria on a table that is already grouped, from any tool.

    Groups are the distinct tuples of its quasi-identifier columns as they stand, or the `group` column of a bucketized
    folder (qi.parquet and sensitive.parquet, or .csv). Exit 3 when it is not safe.
    """

    def work() -> int:
        from anon.commands.check import check as checked

        with _progress(as_json, log_json) as progress:
            options = _options(memory, threads=threads, show_values=show_values, prior=prior, save_priors=save_priors)
            result = checked(config, on, options, progress)
        _show_result(result, as_json)
        return _strictly(result.facts, strict, progress) if result.safe else 3

    guarded(work, as_json, debug, show_values)


@app.command()
def utility(
    config: ConfigFile,
    on: Annotated[
        str, typer.Option("--on", metavar="TABLE", help="The release: Parquet, CSV, a folder of either, or a glob.")
    ],
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """How much of the config's source a release of it still tells; both are read.

    What was lost per column, how far off COUNT queries are that only see the release, and the metrics of the literature
    (docs/utility.md). The release may be generalized or bucketized (qi and sensitive), with the labels of the config.
    """

    def work() -> int:
        from anon.commands.utility import utility as measured

        with _progress(as_json, log_json) as progress:
            result = measured(config, on, _options(memory, threads=threads), progress)
        _show(result.to_dict(), as_json, "show_utility")
        return 0

    guarded(work, as_json, debug, show_values)


@app.command()
def explore(
    config: ConfigFile,
    on: Grouped,
    value: Annotated[list[str], typer.Option("--value", metavar="V", help="A sensitive value; may be repeated.")],
    confidence: Annotated[
        list[str],
        typer.Option("--confidence", metavar="C", help="How sure an adversary may not become; may be repeated."),
    ],
    sensitive: Sensitive = None,
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """How much an adversary may know before a table is not safe any more: knowledge skylines.

    For each value and confidence all maximal safe amounts of knowledge (l, k, m), and who succeeds with one piece more
    (docs/explore.md). The table is read as by `check`; a value that it does not have is a warning.
    """

    def work() -> int:
        from anon.commands import explore as commands

        with _progress(as_json, log_json) as progress:
            options = _options(memory, threads=threads, show_values=show_values)
            result = commands.explore(config, on, value, confidence, sensitive, options, progress)
        return _show_risk(result, as_json, strict, "show_skylines", progress)

    guarded(work, as_json, debug, show_values)


@app.command()
def disclose(
    config: ConfigFile,
    on: Grouped,
    max_k: Annotated[int, typer.Option("--max-k", min=0, metavar="K", help="Most pieces of knowledge, up to 1,000.")],
    sensitive: Sensitive = None,
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """How sure of somebody's value 0 to K pieces of knowledge can make, for implications and for negations.

    With the pieces that reach each maximum (docs/explore.md). The table is read as by `check`.
    """

    def work() -> int:
        from anon.commands import explore as commands

        with _progress(as_json, log_json) as progress:
            options = _options(memory, threads=threads, show_values=show_values)
            result = commands.disclose(config, on, max_k, sensitive, options, progress)
        return _show_risk(result, as_json, strict, "show_disclosure", progress)

    guarded(work, as_json, debug, show_values)


@app.command()
def attack(
    config: ConfigFile,
    on: Grouped,
    threshold: Annotated[
        str, typer.Option(metavar="SHARE", help="The share of a value from which on a group counts.")
    ] = "0.95",
    prior: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A prior file: what the adversary believes before the release."),
    ] = None,
    rho1: Annotated[
        str | None, typer.Option(metavar="R", help="Beliefs below this that rise above rho2 are breaches.")
    ] = None,
    rho2: Annotated[
        str | None, typer.Option(metavar="R", help="See --rho1; also from above 1 - rho1 to below 1 - rho2.")
    ] = None,
    sensitive: Sensitive = None,
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """What can be read off a table: groups where nearly everybody has one value, at once or with others ruled out.

    With a prior also how far the table moves what an adversary believes (docs/explore.md). The table is read as by
    `check`.
    """

    def work() -> int:
        from anon.commands import explore as commands

        with _progress(as_json, log_json) as progress:
            options = _options(memory, threads=threads, show_values=show_values)
            result = commands.attack(config, on, threshold, prior, rho1, rho2, sensitive, options, progress)
        return _show_risk(result, as_json, strict, "show_attack", progress)

    guarded(work, as_json, debug, show_values)


@app.command()
def plan(
    config: ConfigFile,
    sql: Annotated[
        bool, typer.Option("--sql", help="The queries that a run sends to DuckDB, in order, up to its search.")
    ] = False,
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """What a run of the config would do, without searching or writing: sizes, memory, disk, and what stands in its way.

    Walks the first stages of a run, so mistakes end as they would there (exit 2; a gap in a hierarchy is one). Exit 3
    when the whole table as one group already fails a criterion that splitting only makes worse: no release exists. The
    method reuse has no search: its recoding is applied and the result verified, and exit 3 says that it is not safe.
    """

    def work() -> int:
        from anon.commands.plan import plan as planned

        with _progress(as_json, log_json) as progress:
            options = _options(memory, threads=threads, show_values=show_values)
            result = planned(config, None, options, progress)
        told = result.to_dict() | ({"sql": result.report["sql"]} if sql else {})
        _show(told, as_json, "show_plan")
        return _strictly(told, strict, progress) if told["feasible"] else 3

    guarded(work, as_json, debug, show_values)


@app.command()
def explain(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder of an earlier `anon run`.")],
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """Why a run came to its release: what holds and how close it is, what was generalized and lost per column.

    Which criterion binds, and which groups it keeps from being split. For the lattice method every combination of
    levels that is safe while none below it is, and what refuses a level less. Where the source is still what it was and
    has up to 2 million rows, the search is done again with looser criteria, to measure what relaxing each would buy.
    """

    def work() -> int:
        from anon.commands.explain import explained

        with _progress(as_json, log_json) as progress:
            told = explained(run, _options(memory, threads=threads), progress)
        _show(told, as_json, "show_why", module="words_why")
        return 0

    guarded(work, as_json, debug, show_values)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder of an earlier `anon run`.")],
    out: Annotated[
        Path | None, typer.Option(help="The file to write; report.html in the run folder without it.", metavar="FILE")
    ] = None,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """Renders the page of a run again, from its report.json alone.

    One file that needs no network. It names values of the data only if the run was told to show them.
    """

    def work() -> int:
        from anon.report.page import write

        _show(write(run, out, show_values), as_json, "show_page")
        return 0

    guarded(work, as_json, debug, show_values)


@app.command()
def schema(
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """Prints the JSON Schema of the config, for editors."""

    def work() -> int:
        from anon.config import json_schema

        say_json(json_schema(), indent=2)
        return 0

    guarded(work, as_json, debug, show_values)
