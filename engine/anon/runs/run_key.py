"""The key of a run: 32 random bytes from which coins are tossed that outsiders cannot compute. It stays in the run
folder, and a later run to the same place uses it again: the same run then gives the same release, and a second release
of the same people does not show other coins for the same decisions. (A sample is drawn by more than the key, see
anon.source.sample: as soon as the rows or the config change, all of its coins do.) Until the run folder is published
the key is in the checkpoint, so that a run that is stopped resumes with it."""

from __future__ import annotations

import secrets
from pathlib import Path

from anon.config import Config
from anon.config.grammar import tosses_coins
from anon.config.private_release import promised
from anon.core import disk
from anon.core.checkpoint import Checkpoint
from anon.core.database import translated
from anon.errors import ConfigError

KEY, BYTES = "run.key", 32


def with_early_key(config: Config) -> Config:
    """Return the config with the key by which the source is sampled, before it is read; the config as it is if it is
    not. A run that samples has no checkpoint to resume from."""
    return config.with_key(_earlier_or_new(config.release.run / KEY)) if promised(config) is not None else config


def with_key(config: Config, checkpoint: Checkpoint, run: Path) -> Config:
    """Return the config with the key of its run, which is written into the folder that will be the run folder; the
    config as it is if nothing in it needs one."""
    if not tosses_coins(config):
        return config
    stopped = checkpoint.folder / KEY
    key = config.key or _earlier_or_new(stopped, config.release.run / KEY)
    with translated("writing the key of the run", disk=True):
        for path in (stopped, run / KEY):
            disk.write_durably(path, key.hex().encode())
    return config.with_key(key)


def _earlier_or_new(*places: Path) -> bytes:
    with translated("reading the key of the run", disk=True):
        found = next((_read(path) for path in places if disk.exists(path)), None)
    return secrets.token_bytes(BYTES) if found is None else found


def with_key_of(config: Config, run: Path) -> Config:
    """Return the config with the key that is in a run folder; the config as it is if nothing in it needs one."""
    return config.with_key(_read(run / KEY)) if tosses_coins(config) else config


def _read(path: Path) -> bytes:
    try:
        key = bytes.fromhex(path.read_bytes().decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != BYTES:
        expected, hint = f"{BYTES} bytes in hexadecimal, as a run wrote them", "without the file, new coins are tossed"
        raise ConfigError.at("release.run", f"a damaged {KEY}", expected, hint)
    return key
