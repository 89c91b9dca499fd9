"""The command line: options, exit codes, where output goes. Results go to stdout, messages and progress to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anon.cli_common import Commands, Debug, Json, LogJson, ShowValues, Strict, guarded
from anon.cli_hierarchy import hierarchy_app

if TYPE_CHECKING:
    from anon.pipeline import Options, Result
    from anon.progress import Progress

app = typer.Typer(
    cls=Commands,
    help="Anonymize tables about people: a release that a stated adversary cannot break, written and verified.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done or safe, 2 usage or config, 3 not safe, 4 verification failed, 5 source or backend, "
    "6 memory or disk, 130 interrupted.",
)
app.add_typer(hierarchy_app, name="hierarchy")

Memory = Annotated[
    str | None,
    typer.Option(help="Memory of the whole process, e.g. 1GB; overrides limits.memory. At least 400MB."),
]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; overrides limits.threads.")]
ConfigFile = Annotated[Path, typer.Argument(help="The config, a YAML file (see `anon schema`).", metavar="CONFIG")]


@contextmanager
def _progress(as_json: bool, log_json: bool) -> Iterator[Progress]:
    from anon.progress import Bars, Events, Lines

    kind = Events if log_json else Bars if sys.stderr.isatty() and not as_json else Lines
    with closing(kind()) as progress:
        yield progress


def _options(memory: str | None, **options: Any) -> Options:
    from anon.pipeline import Options

    return Options.of(memory=memory, **options)


def _show(told: dict[str, Any], as_json: bool, way: str, *more: Any) -> None:
    """Prints facts: as one JSON object, or in words, by a function of report.words that may need to know more."""
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
        return
    from rich.console import Console

    from anon.report import words

    getattr(words, way)(Console(), told, *more)


def _show_result(result: Result, as_json: bool) -> None:
    places = {}
    if result.release and result.run:
        places = {"release": str(result.release), "report ": str(result.run / "report.json")}
    _show(result.to_dict(), as_json, "show", result.report, places)


@app.command()
def run(
    config: ConfigFile,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; overrides release.path, and release.run with -run added.")
    ] = None,
    memory: Memory = None,
    threads: Threads = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from where a run of the same config and source was stopped.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the release of an earlier run, in one step.")
    ] = False,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """The main job: from the config's source to a verified release.

    Nothing can be seen at release.path before the written files have passed verification. A run that is stopped leaves
    a checkpoint, from which --resume goes on and ends with the same bytes; a start without it begins anew.
    """

    def work() -> int:
        from anon import pipeline

        options = _options(
            memory, out=out, threads=threads, resume=resume, overwrite=overwrite, show_values=show_values, strict=strict
        )
        with _progress(as_json, log_json) as progress:
            result = pipeline.run(config, None, options, progress)
        _show_result(result, as_json)
        return 0

    guarded(work, as_json, debug, show_values)


@app.command()
def check(
    config: ConfigFile,
    on: Annotated[str, typer.Option("--on", help="The table: Parquet, CSV, a folder of either, or a glob.")],
    prior: Annotated[Path | None, typer.Option(help="A prior file that stands in for those of r_robustness.")] = None,
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
        from anon import pipeline

        options = _options(memory, threads=threads, show_values=show_values, prior=prior, save_priors=save_priors)
        with _progress(as_json, log_json) as progress:
            result = pipeline.check(config, on, options, progress)
        _show_result(result, as_json)
        return 0 if result.safe and not (strict and result.facts["warnings"]) else 3

    guarded(work, as_json, debug, show_values)


@app.command()
def utility(
    config: ConfigFile,
    on: Annotated[str, typer.Option("--on", help="The release: Parquet, CSV, a folder of either, or a glob.")],
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
        from anon import pipeline

        with _progress(as_json, log_json) as progress:
            result = pipeline.utility(config, on, _options(memory, threads=threads), progress)
        _show(result.to_dict(), as_json, "show_utility")
        return 0

    guarded(work, as_json, debug, show_values)


@app.command()
def explain(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder of an earlier `anon run`.")],
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """Why a run came to its release: what holds and how close it is, what was lost per column.

    For the lattice method also every combination of levels that is safe while none below it is, with its metrics.
    """

    def work() -> int:
        from anon.report.explain import explained

        _show(explained(run), as_json, "show_explanation")
        return 0

    guarded(work, as_json, debug, show_values)


@app.command()
def schema() -> None:
    """Prints the JSON Schema of the config, for editors."""
    from anon.config import json_schema

    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
