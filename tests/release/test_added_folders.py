"""Parts from a cluster are folders of files, which are added to a series as wholes or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from anon.core import disk
from anon.errors import ResourceError
from anon.release.publication import Addition, Publication
from anon.source.series_files import series_tables

FILES = ("part-000002.parquet/part-000000.parquet", "part-000002.parquet/part-000001.parquet", "datapackage.json")


@pytest.fixture
def publication(tmp_path: Path) -> Publication:
    """Return what adds a second part to a release."""
    staged, place = tmp_path / "staged", tmp_path / "out"
    for folder, names in ((place, ["part-000001.parquet", FILES[2]]), (staged, FILES)):
        for name in names:
            (folder / name).parent.mkdir(exist_ok=True, parents=True)
            (folder / name).write_text(f"{folder.name} {name}")
    (staged / FILES[0]).parent.chmod(0o755)
    return Publication(tmp_path / "journal.json", (Addition(staged, place, disk.digests(staged)),))


def published(publication: Publication) -> dict[str, str]:
    (step,) = publication.moves
    assert isinstance(step, Addition)
    return {path.relative_to(step.place).as_posix(): path.read_text() for path in disk.tree_of(step.place)[0]}


def test_a_folder_is_added_with_the_permissions_that_it_has(publication: Publication, tmp_path: Path) -> None:
    assert publication.carry_out(lambda: None, tmp_path / "none") is None
    assert published(publication).keys() == {"part-000001.parquet", *FILES}
    assert published(publication)[FILES[2]] == f"staged {FILES[2]}"
    assert stat.S_IMODE((tmp_path / "out" / FILES[0]).parent.stat().st_mode) == 0o755


@pytest.mark.parametrize("before", [0, 1, 2])
def test_nothing_of_a_folder_is_left_if_a_file_cannot_be_added(
    publication: Publication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    replace, calls, there = disk.replace, list[Path](), published(publication)

    def failing(old: Path, new: Path) -> None:
        if len(calls) == before:
            raise OSError(5, "Input/output error")
        calls.append(old)
        replace(old, new)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "replace", failing)
        with pytest.raises(ResourceError, match=r"the publication is not finished|nothing was published"):
            publication.carry_out(lambda: None, tmp_path / "none")
    if disk.exists(publication.journal):  # the failure lasted
        assert publication.recover(tmp_path / "none") == "completed"
        assert published(publication).keys() == {"part-000001.parquet", *FILES}
        return
    assert published(publication) == there
    assert sorted(disk.names(tmp_path / "out")) == ["datapackage.json", "part-000001.parquet"]


def test_the_files_of_one_table_are_no_parts_of_a_series(tmp_path: Path) -> None:
    folder = tmp_path / "out" / "part-000001.parquet"
    folder.mkdir(parents=True)
    for number in (0, 1):
        (folder / f"part-{number:06d}.parquet").touch()
    (tmp_path / "out" / "part-000002.parquet").touch()
    assert series_tables(folder) == {}
    assert series_tables(tmp_path / "out") == {"part": {1: folder, 2: tmp_path / "out" / "part-000002.parquet"}}
