"""`anon series`: what the ledger of a series holds, taking individuals out of it, and making it again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from anon.artifacts.ledger import Ledger
from anon.config import Config, load, redact, without_secrets
from anon.config.support import refuse_unsupported
from anon.core.database import connect
from anon.core.memory import Memory
from anon.core.progress import Progress
from anon.errors import ConfigError
from anon.runs.named_files import check_files
from anon.runs.options import DEFAULTS, Options, adjusted
from anon.runs.result import Result
from anon.runs.series import ledger as ledgers
from anon.runs.series.rebuilding import Rebuilding
from anon.runs.series.withdrawal import Withdrawal
from anon.runs.workspace import locked_release, workspace
from anon.source.origins import origin_of


@without_secrets(source=False)
def status(config: Any, options: Options = DEFAULTS, progress: Progress | None = None) -> Result:
    """Return what the ledger of a series holds, after it was compared with the published parts."""
    config = _of_series(adjusted(load(config), options))
    with locked_release(config, progress or Progress()):
        ledger = _read(config)
    parts = [
        {
            "part": part.number, "rows": part.rows, "individuals": part.individuals,
            "groups": part.groups - len(part.withdrawn_groups), "withdrawn_groups": len(part.withdrawn_groups),
            "run": part.run, "files": part.files,
        }
        for part in ledger.parts
    ]  # fmt: skip
    facts = {
        "kind": ledger.kind, "nights": ledger.night, "parts": parts, "released": ledger.released,
        "waiting": ledger.waiting.individuals, "withdrawn": ledger.withdrawn.individuals,
    }  # fmt: skip
    return Result(facts, {}, places={"ledger": redact(str(ledgers.folder_of(config)), config.secrets)})


@without_secrets(source=False)
def withdraw(
    config: Any, individuals: Path, yes: bool = False, options: Options = DEFAULTS, progress: Progress | None = None
) -> Result:
    """Take individuals, a text file with an id per line, out of a series, and their whole groups with them; without
    `yes` only count what would go."""
    config, progress = _of_series(adjusted(load(config), options)), progress or Progress()
    ids, limits = _ids(individuals), config.limits
    with (
        locked_release(config, progress) as state,
        workspace(state, config, progress.run) as work,
        closing(connect(limits.memory, limits.threads, work.spill)) as database,
    ):
        withdrawal = Withdrawal(config, _read(config), database)
        counts = withdrawal.look_up(ids)
        if yes:
            withdrawal.carry_out(work)
    return Result(counts | {"done": yes}, {})


@without_secrets(source=True)
def rebuild(config: Any, table: Any = None, options: Options = DEFAULTS, progress: Progress | None = None) -> Result:
    """Make the ledger of a series again from its published parts and a source, or a table in its place, that holds
    everybody who was released. ConfigError if there is a ledger that is not damaged."""
    config, progress = _of_series(adjusted(load(config), options)), progress or Progress()
    refuse_unsupported(config, run=True)
    check_files(config, run=True)
    limits = config.limits
    Memory(limits.memory).check()
    with locked_release(config, progress) as state:
        if ledgers.is_intact(config):
            found = f"{redact(str(ledgers.folder_of(config)), config.secrets)}, where a ledger is that is not damaged"
            hint = "anon run adds to the series; a ledger is never rebuilt while it can be read"
            raise ConfigError.at(
                "release.run", found, "the run folder of a series whose ledger is lost or damaged", hint
            )
        with (
            workspace(state, config, progress.run) as work,
            closing(connect(limits.memory, limits.threads, work.spill)) as database,
        ):
            return Result(Rebuilding(config, work, database).run(origin_of(config, table)), {})


def _of_series(config: Config) -> Config:
    if config.release.series is None or config.release.series.kind != "append":
        raise ConfigError.at("release.series", "nothing", "series: append, whose ledger this command is about")
    return config


def _read(config: Config) -> Ledger:
    ledger = ledgers.read(config)
    if ledger is None:
        found = f"{redact(str(ledgers.folder_of(config)), config.secrets)}, where no ledger is"
        raise ConfigError.at("release.run", found, "the run folder of a series that has begun")
    return ledger


def _ids(file: Path) -> list[str]:
    """Return the lines of a file as they are; an id may have any character but a line break."""
    try:
        text = file.read_text(encoding="utf-8-sig")  # which has ends of lines as \n
    except (OSError, UnicodeDecodeError):
        raise ConfigError.at("--individuals", str(file), "a text file in UTF-8 with an id per line") from None
    if not (ids := [line for line in text.split("\n") if line]):
        raise ConfigError.at("--individuals", f"{file}, which is empty", "a text file with an id per line")
    return ids
