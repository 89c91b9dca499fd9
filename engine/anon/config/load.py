"""Load a config: read the YAML file or mapping, put environment variables in, and return one `Config` or raise all
mistakes at once."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

import yaml
from pydantic import ValidationError

from anon.config.canonical import canonical
from anon.config.grammar import NO_SOURCE, Config
from anon.config.mistakes import Loc, below, describe
from anon.config.secrets import Secrets, passwords, redact, remove_secrets
from anon.config.yaml12 import excerpt_at, parse_yaml
from anon.errors import ConfigError, Problem, as_resource_error

VARIABLE = re.compile(r"\$\$\{|\$\{(?P<name>[^}]*)(?P<end>\}?)")
DSN = "source.postgres.dsn"
LARGEST = 18  # decimal digits of a whole number, so that counts fit 64 bits
LARGEST_EXPONENT = 300  # powers of ten, so that exact arithmetic stays small
P = ParamSpec("P")
R = TypeVar("R")


def load(
    config: str | os.PathLike[str] | Mapping[str, Any] | Config,
    environ: Mapping[str, str] | None = None,
    *,
    source: bool = True,
    base: Path | None = None,
) -> Config:
    """Return the validated config of a YAML file, a mapping or a Config; ConfigError lists every mistake.

    Relative paths are relative to the file, or to `base` for a mapping, without it to the working directory.
    `source=False`: the source is not read, so it may be missing, and its variables need not be set.
    """
    variables = os.environ if environ is None else environ
    return config if isinstance(config, Config) else _loaded(config, _Draft(variables, source), base or Path.cwd())


def without_secrets(
    *, source: bool, replaced: bool = False
) -> Callable[[Callable[Concatenate[Any, P], R]], Callable[Concatenate[Any, P], R]]:
    """Return a decorator that loads the config a function takes first, and removes the values of its variables from
    every error. `source`: whether the function reads the source; `replaced`: not if it is passed a table, its second
    argument, in place of the source. A failing disk becomes a ResourceError."""

    def around(work: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
        @wraps(work)
        def keeping(config: Any, /, *rest: P.args, **more: P.kwargs) -> R:
            given = replaced and (rest[0] if rest else more.get("table")) is not None
            loaded = load(config, source=source and not given)
            try:
                return work(loaded, *rest, **more)
            except BaseException as error:
                ours = as_resource_error(error)
                for failure in (ours, *_with_causes(error)):
                    remove_secrets(failure, loaded.secrets)
                if ours is None:
                    raise
                raise ours from error

        return keeping

    return around


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, which a traceback shows as well."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@dataclass
class _Draft:
    """A config that is being loaded: the environment, the variables put in, and the mistakes so far."""

    environ: Mapping[str, str]
    source: bool  # whether it is read
    problems: list[Problem] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)

    def plain(self, value: Any, path: str = "") -> Any:
        """Return lists, mappings with text keys, text, truth values, whole numbers and exact decimals."""
        if isinstance(value, Mapping):
            return {self._key(key, path): self.plain(item, below(path, str(key))) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(item, below(path, index)) for index, item in enumerate(value)]
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if isinstance(value, float):
            value = Decimal(repr(float(value)))
        if isinstance(value, int | Decimal) and _too_large(value):
            expected = f"a number of at most {LARGEST} digits and an exponent of at most {LARGEST_EXPONENT}"
            self.problems.append(Problem(path, "a number out of range", expected))
            return None
        return value

    def _key(self, key: Any, path: str) -> str:
        if not isinstance(key, str):
            hint = f'write "{key}" in quotes'
            self.problems.append(Problem(below(path, str(key)), f"{describe(key)} as a key", "text as a key", hint))
        elif "${" in key:
            self.problems.append(Problem(below(path, key), "a variable in a key", "variables in values only"))
        return str(key)

    def interpolated(self, value: Any, path: str = "") -> Any:
        """Return the plain data with `${NAME}` replaced in every text."""
        if isinstance(value, dict):
            return {key: self.interpolated(item, below(path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.interpolated(item, below(path, index)) for index, item in enumerate(value)]
        if isinstance(value, str):
            return VARIABLE.sub(lambda match: self._variable(match, path), value)
        return value

    def _variable(self, match: re.Match[str], path: str) -> str:
        name, written = match["name"], match[0]
        if name is None:
            return "${"
        if not match["end"] or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            hint = "write $${ for the characters ${ themselves"
            self.problems.append(Problem(path, describe(written), "a variable as ${NAME}", hint))
        elif name not in self.environ and (self.source or not path.startswith("source.")):
            self.problems.append(Problem(path, written, f"an environment variable {name} that is set"))
        elif name in self.environ:
            self.secrets[name] = self.environ[name]
            return quote(self.environ[name], safe="") if _is_login(match, path) else self.environ[name]
        return written


def _is_login(match: re.Match[str], path: str) -> bool:
    """Return whether a variable stands for a user or a password in a connection URL, where @, / and # mean something
    else: a part of the password would be taken for the host, and looked up."""
    address = re.match(r"\w+://[^/?]*@", VARIABLE.sub(lambda found: "x" * len(found[0]), match.string))
    return path == DSN and address is not None and match.end() < address.end()


def _loaded(config: str | os.PathLike[str] | Mapping[str, Any], draft: _Draft, base: Path) -> Config:
    try:
        written, text, base = _read(config, draft, base)
        original = _jsonable(written)
        data = draft.interpolated(written)
        text = json.dumps(original, default=str) if text is None else text
    except RecursionError:
        raise ConfigError.at("config", "", "the config is nested too deeply") from None
    secrets = tuple(draft.secrets.items())
    loaded, mistakes = _validated(data, base, written, secrets)
    draft.problems += _written_passwords(written)
    if draft.source and "source" not in data:
        draft.problems.append(Problem("source", "nothing", NO_SOURCE, "or pass a table in Python"))
    known = {problem.path for problem in draft.problems}
    problems = draft.problems + [problem for problem in mistakes if problem.path not in known]
    if loaded is None or problems:
        raise ConfigError(problems)
    loaded._text, loaded._base, loaded._secrets = text, base, secrets
    loaded._original = canonical(loaded, original)
    return loaded


def _read(
    config: str | os.PathLike[str] | Mapping[str, Any], draft: _Draft, base: Path
) -> tuple[dict[str, Any], str | None, Path]:
    """Return the plain data, the text of a file, and the folder of relative paths: that of the file, or the given
    one."""
    if isinstance(config, Mapping):
        return draft.plain(config), None, base
    if not isinstance(config, str | os.PathLike):
        raise ConfigError.at("config", describe(config), "a path, a mapping or a Config")
    path = Path(config)
    text = _text_of(path)
    try:
        data = parse_yaml(text, draft.problems)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path.name}:{mark.line + 1}:{mark.column + 1}" if mark else path.name
        excerpt = excerpt_at(text, mark.line, mark.column) if mark else ""
        raise ConfigError([Problem(place, "", f"not valid YAML: {_reason(error)}", excerpt=excerpt)]) from None
    except yaml.YAMLError:
        raise ConfigError.at(path.name, "", "the file holds characters that are not text; expected YAML") from None
    if not isinstance(data, dict):
        expected = "the file is empty" if data is None else f"the file holds a {describe(data)}"
        raise ConfigError.at(path.name, "", f"{expected}; expected a mapping with source, columns, privacy and release")
    return draft.plain(data), text, path.parent.resolve()


def _reason(error: yaml.MarkedYAMLError) -> str:
    """Return what the parser says, and where the part of the file began that it could not finish."""
    said, began = error.problem or error.context or "", error.context_mark
    if error.context is None or began is None or error.problem is None:
        return said
    return f"{said} ({error.context} that began on line {began.line + 1})"


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError.at(str(path), "no such file", "a config file in YAML") from None
    except IsADirectoryError:
        raise ConfigError.at(str(path), "a folder", "a config file in YAML") from None
    except UnicodeDecodeError:
        raise ConfigError.at(str(path), "bytes that are not UTF-8 text", "a config file in YAML") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise ConfigError.at(str(path), f"a file that cannot be read ({reason})", "a config file in YAML") from None


def _written_passwords(written: dict[str, Any]) -> list[Problem]:
    """Return the problem of a password in the config itself, which would be in the manifest too and in every copy."""
    dsn = _child(_child(_child(written, "source"), "postgres"), "dsn")
    if not isinstance(dsn, str) or not any(VARIABLE.sub("", found) for found in passwords(dsn)):
        return []
    hint = "or leave it out: PGPASSWORD and ~/.pgpass are read"
    return [Problem(DSN, "a password", "the password as ${NAME}, from the environment", hint)]


def _validated(
    data: dict[str, Any], base: Path, written: dict[str, Any], secrets: Secrets
) -> tuple[Config | None, list[Problem]]:
    try:
        return Config.model_validate(data, context={"base": base}), []
    except ValidationError as error:
        lines = error.errors(include_url=False)
    problems = []
    for line in lines:
        said = {key: redact(text, secrets) for key, text in line["ctx"].items()}
        path, value = _located(line["loc"], data, written)
        problems.append(Problem(path, said["found"] or describe(value), said["expected"], said["hint"]))
    return None, problems


def _located(loc: Loc, data: Any, written: Any) -> tuple[str, Any]:
    """Return the path of a mistake and the value there before variables were put in."""
    path = ""
    for part in loc:
        if isinstance(data, list) and part in data and isinstance(part, str):
            part = data.index(part)
        if part == "[key]":
            return path, ""
        path = below(path, part)
        data, written = _child(data, part), _child(written, part)
    return path, written


def _child(value: Any, part: int | str) -> Any:
    try:
        return value[part]
    except (KeyError, IndexError, TypeError):
        return None


def _too_large(value: int | Decimal) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite() and abs(value.adjusted()) > LARGEST_EXPONENT
    found: bool = abs(value) >= 10**LARGEST
    return found


def _jsonable(value: Any) -> Any:
    """Return plain data for JSON: a decimal becomes the float that is written like it, or text if there is none; a
    function becomes its name."""
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() and Decimal(repr(float(value))) == value else str(value)
    if callable(value):
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}.{named.__qualname__}"
    return value if isinstance(value, str | int | None) else str(value)
