"""Read the files of a run folder as models, for `report`, `explain`, `reuse` and the next run. manifest.json and
report.json carry their own digests, and the manifest carries that of the recoding, so that a damaged file, or one of
another run, is refused before it is used; `schema` and `recoding` define the form of their content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar

from anon.artifacts.ledger import LEDGER, Ledger
from anon.artifacts.recoding import FORMAT, WITH_REST, WITH_SUPPRESSED, AnyRecodingFile, parse_recoding
from anon.artifacts.schema import MANIFEST, REPORT, Manifest, Report
from anon.errors import ConfigError, as_resource_error

VERSIONS = {
    "manifest.json": (MANIFEST,), "report.json": (REPORT,), "recoding.json": (FORMAT, WITH_REST, WITH_SUPPRESSED),
    "ledger.json": (LEDGER,),
}  # fmt: skip
FIELD, EXPECTED = "RUN", "the run folder of an earlier `anon run` (release.run)"
DEEPEST = 64  # levels of nested lists and objects
OWN = "sha256"  # the field that holds the digest of the others
Json = dict[str, Any]
Sealed = TypeVar("Sealed", Manifest, Report, Ledger)


def sealed(content: Json) -> Json:
    """Return a JSON object with its own digest.

    >>> sealed({"run": "1"})["sha256"] == sealed({"run": "2"})["sha256"]
    False
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return content | {OWN: hashlib.sha256(text.encode()).hexdigest()}


def sealed_text(artifact: Manifest | Report | Ledger) -> str:
    """Return the text of a manifest.json, report.json or ledger.json."""
    return json.dumps(sealed(artifact.to_dict()), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_manifest(run: Path, field: str = FIELD, expected: str = EXPECTED) -> Manifest:
    """Return the manifest of a run folder; raise ConfigError if it is not as this version wrote it."""
    return _read_sealed(run, "manifest.json", Manifest, field, expected)


def read_report(run: Path) -> Report:
    """Return the report of a run folder; raise ConfigError if it is not as this version wrote it."""
    return _read_sealed(run, "report.json", Report, FIELD, EXPECTED)


def read_ledger(folder: Path) -> Ledger:
    """Return the ledger of a series, given its folder; raise ConfigError if it is not as this version wrote it."""
    expected = "the ledger as the last run left it: put the run folder back"
    return _read_sealed(folder, "ledger.json", Ledger, "release.run", expected)


def _read_sealed(run: Path, name: str, model: type[Sealed], field: str, expected: str) -> Sealed:
    found = _parsed(_bytes(run, name, field, expected), name, field, expected)
    _check_version(name, found.get("version"), field)
    content = {key: value for key, value in found.items() if key != OWN}
    try:
        if _is_flat(found) and sealed(content) == found:
            return model.model_validate(content)
    except ValueError:  # NaN, half of a surrogate pair, or another form
        pass
    raise _unreadable(name, field, expected)


def read_recoding(run: Path, field: str = FIELD, expected: str = EXPECTED) -> tuple[AnyRecodingFile, bytes]:
    """Return the recoding.json that the manifest of a run folder refers to: as a model, and as it was written."""
    manifest = read_manifest(run, field, expected)
    content = _bytes(run, "recoding.json", field, expected)
    if hashlib.sha256(content).hexdigest() != manifest.recoding_sha256:
        raise ConfigError.at(field, "a recoding.json that is not the one this run wrote", expected)
    found = _parsed(content, "recoding.json", field, expected)
    _check_version("recoding.json", found.get("format"), field)
    try:
        return parse_recoding(found), content
    except ValueError:
        raise _unreadable("recoding.json", field, expected) from None


def read_run(run: Path) -> tuple[Manifest, Report, AnyRecodingFile]:
    """Return the manifest, the report and the recoding of a run folder, which must be of one run."""
    report, manifest = read_report(run), read_manifest(run)
    recoding, _ = read_recoding(run)
    method = manifest.config.get("method", {})
    columns = sorted(column.name for column in recoding.columns)
    same = (
        report.provenance.to_dict() == manifest.provenance.to_dict()
        and report.privacy == manifest.config.get("privacy")
        and isinstance(method, dict)
        and report.method.to_dict() == {"kind": report.method.kind, **method}
        and columns == sorted(report.utility.loss.columns)
    )
    if not same:
        raise ConfigError.at(FIELD, "a report.json and a manifest.json of different runs", EXPECTED)
    return manifest, report, recoding


def _check_version(name: str, version: Any, field: str) -> None:
    """Raise ConfigError if another version of anon wrote a file in another form."""
    if type(version) is int and version not in VERSIONS[name]:
        wanted = f"version {' or '.join(map(str, VERSIONS[name]))}, which this anon writes; run it again"
        raise ConfigError.at(field, f"a {name} of version {version}", wanted)


def _is_flat(value: Any, deepest: int = DEEPEST) -> bool:
    """Return whether lists and objects are nested at most `deepest` levels, which every reader can process."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return deepest > 0 and all(_is_flat(each, deepest - 1) for each in inside)


def _bytes(run: Path, name: str, field: str, expected: str) -> bytes:
    try:
        return (run / name).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError.at(field, f"{run}, where no {name} is", expected) from None
    except OSError as error:
        raise as_resource_error(error) or _unreadable(name, field, expected) from None


def _parsed(content: bytes, name: str, field: str, expected: str) -> Json:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):  # not JSON, or more brackets than can be read
        found = None
    if not isinstance(found, dict):
        raise _unreadable(name, field, expected)
    return found


def _unreadable(name: str, field: str, expected: str) -> ConfigError:
    return ConfigError.at(field, f"a {name} that is damaged or that anon did not write", expected)
