"""Model of ledger.json, the private record of a series: what was published in which part and under which settings, and
what the next part must be safe beside. Who was released is in files beside it, which it names with their digests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from anon.artifacts.parts import ArtifactPart, Count, Several, SourcePart
from anon.artifacts.schema import Dependencies

LEDGER = 1  # the version that this anon writes and reads


class LedgerFile(ArtifactPart):
    """A file of the ledger, the number of individuals in it, and its SHA-256."""

    name: str
    individuals: Count
    sha256: str


class PublishedPart(ArtifactPart):
    """A part: its number, the run that made it, its files by name with their SHA-256, its sizes, and the file with the
    keyed hashes of its individuals."""

    number: Several
    run: str
    files: dict[str, str]
    rows: Count
    individuals: Count
    groups: Count
    ids: LedgerFile
    withdrawn_groups: list[Count] = Field([])
    resources: list[dict[str, Any]]  # as datapackage.json describes the files


class Settings(ArtifactPart):
    """What every night of a series has in common, as the config of the last night has it."""

    columns: dict[str, Any]
    release: dict[str, Any]
    privacy: list[dict[str, Any]]


class Seen(ArtifactPart):
    """The source and everything else that the last night depended on."""

    dependencies: Dependencies
    source: list[SourcePart]


class Ledger(ArtifactPart):
    """ledger.json."""

    version: Annotated[int, Field(ge=LEDGER, le=LEDGER)]
    kind: Literal["append"]
    night: Count  # how often it was written
    key: str  # of the hashes, in hexadecimal
    settings: Settings
    individual: str  # the type of the column that says who a row is about
    types: dict[str, str] = Field({})  # of the published columns, once there is a part
    parts: list[PublishedPart]
    waiting: LedgerFile = LedgerFile(name="", individuals=0, sha256="")
    withdrawn: LedgerFile = LedgerFile(name="", individuals=0, sha256="")
    earlier: dict[str, list[list[Any]]]  # groups that later ones are judged beside (criteria/earlier.py)
    seen: list[Seen]  # of the last night; none after a rebuild

    @property
    def released(self) -> int:
        """The number of individuals in all parts."""
        return sum(part.individuals for part in self.parts)

    @property
    def known(self) -> list[LedgerFile]:
        """The files with the keyed hashes of all individuals who are not to be released again."""
        return [*(part.ids for part in self.parts), self.withdrawn]

    @property
    def files(self) -> list[LedgerFile]:
        """The files beside ledger.json."""
        return [file for file in (*self.known, self.waiting) if file.name]
