"""Thirty nights of a series with everything that nights may bring, against a plain account of who was released when."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import anon
from anon.backends.local import LocalBackend
from anon.commands import series
from tests.helpers.series import CRITERIA, People, Row, digests, extract, groups_of, series_config, waiting

NIGHTS = 30
BRINGS = [
    "nobody", "one", "few", "many", "many", "one value", "other values", "late", "changed", "withdrawal", "tightened"
]  # fmt: skip
TIGHTER = [  # in this order: which criterion changes, if any, and to what
    ("k_anonymity", {"k_anonymity": {"k": 4}}),
    ("", {"l_diversity": {"kind": "distinct", "l": 2}}),
    ("ck_safety", {"ck_safety": {"c": 0.94, "k": 1}}),
    ("", {"ck_safety": {"c": 0.99, "k": 2}}),
]


@dataclass
class Account:
    """What is known of a series without its ledger: who was released, with which row and in which groups; who was
    withdrawn, or was in a group with somebody who was; and who came but has not been delivered yet."""

    folder: Path
    people: People
    config: dict[str, Any]
    released: dict[str, Row] = field(default_factory=dict)
    groups: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    late: list[Row] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)  # digests
    tightened: int = 0  # times
    before: dict[str, str] = field(default_factory=dict)  # the parts when that was last

    @property
    def random(self) -> random.Random:
        return self.people.random

    def night(self, brings: str) -> None:
        """Live one night."""
        if brings == "withdrawal":
            self.withdraw()
        elif brings == "tightened":
            self.tighten()
        rows = self.arrivals(brings)
        extract(self.folder, rows)
        waited = waiting(self.folder)
        found = anon.run(self.config).to_dict()["series"]
        new = {row["id"] for row in rows} - self.released.keys() - self.gone
        assert found["new"] == len(new - waited)
        assert found["again"] == len({row["id"] for row in rows} & (self.released.keys() | self.gone))
        self.take_over(found, {row["id"]: row for row in rows})

    def arrivals(self, brings: str) -> list[Row]:
        """Return the rows of a night; some of those who arrive are held back and come with later ones."""
        size = {"nobody": 0, "one": 1, "few": 5, "late": 12}.get(brings, 25)
        values = {"one value": "a", "other values": "fghi"}.get(brings, "abcde")
        late = {row["id"] for row in self.late}
        known = [row for row in self.people.some(6) if row["id"] not in late]
        rows = self.people.arrive(size, values)
        if brings == "late":
            self.late += rows[6:]
            return rows[:6]
        if brings == "changed":
            rows += [self.changed(row) for row in known]
        if brings == "many":
            rows, self.late = rows + self.late, []
        return rows

    def changed(self, row: Row) -> Row:
        """Return the row of somebody who came before with other values."""
        return row | {"age": 19 + self.random.randrange(50), "ill": self.random.choice("abcde")}

    def withdraw(self) -> None:
        """Take out somebody who was released, somebody who waits, and somebody who never came."""
        if not self.parts:
            return
        names = [*self.random.sample(sorted(self.released), 1), *sorted(waiting(self.folder))[:1]]
        (self.folder / "ids.txt").write_text("\n".join([*names, "nobody"]))
        found = series.withdraw(self.config, self.folder / "ids.txt", yes=True).to_dict()
        left = set().union(*(self.groups[name] for name in names if name in self.released))
        members = {name for name in self.released if self.groups[name] & left}
        assert found["groups"] == len(left) and found["in_parts"] + found["others"] == len(members)
        self.gone |= members | set(names)
        for name in members:
            del self.released[name]
        changed = {name for name, digest in digests(self.folder).items() if self.parts[name] != digest}
        assert {int(name.partition("-")[2][:6]) for name in changed} == {part for part, _ in left}
        self.parts = digests(self.folder)

    def tighten(self) -> None:
        """Demand more of the parts to come."""
        if self.tightened < len(TIGHTER):
            name, more = TIGHTER[self.tightened]
            kept = [criterion for criterion in self.config["privacy"] if name not in criterion]
            self.config = self.config | {"privacy": [*kept, more]}
            self.tightened, self.before = self.tightened + 1, self.parts

    def take_over(self, found: dict[str, Any], rows: dict[str, Row]) -> None:
        """Compare a night with what may have happened, and note it."""
        now, waits = groups_of(self.folder, self.people), waiting(self.folder)
        assert all(len(places) == 1 for places in now.values()), "somebody is in two groups"
        assert all(now[name] == places for name, places in self.groups.items()), "somebody is in another group"
        assert digests(self.folder).items() >= self.parts.items(), "a published part changed"
        new = now.keys() - self.groups.keys()
        assert {part for name in new for part, _ in now[name]} == ({found["part"]} if new else set())
        assert not new & self.gone and not now.keys() & waits
        self.people.known |= {name: row for name, row in rows.items() if name in new | waits}
        self.released |= {name: self.people.known[name] for name in new}
        self.groups, self.parts = now, digests(self.folder)
        assert found["released"] == len(self.released) and found["waiting"] == len(waits)
        came = self.people.known.keys() - {row["id"] for row in self.late}
        assert came == self.released.keys() | waits | self.gone, "somebody is lost"

    def check(self, first: list[Any]) -> None:
        """Assert that all parts are safe as one release by the first criteria, and have the rows that they must."""
        found = anon.check(self.config | {"privacy": first}, self.folder / "out")
        assert found.safe and found.facts["individuals"] == len(self.released)
        if self.config["release"].get("form") == "bucketized":
            values = Counter[str]()
            for file in (self.folder / "out").glob("sensitive-*"):
                for row in pq.read_table(file).to_pylist():
                    values[row["ill"]] += row["count"]
            assert values == Counter(row["ill"] for row in self.released.values())
            return
        rows = [row for file in (self.folder / "out").glob("part-*") for row in pq.read_table(file).to_pylist()]
        assert Counter((row["ill"], row["stay"]) for row in rows) == Counter(
            (row["ill"], row["stay"]) for row in self.released.values()
        )


@pytest.fixture
def one_utility(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure utility once: it is a fifth of a small run and says nothing about a series."""
    known: list[dict[str, Any]] = []
    measure = LocalBackend.utility

    def utility(self: LocalBackend, *given: Any) -> dict[str, Any]:
        known[:] = known or [measure(self, *given)]
        return dict(known[0])

    monkeypatch.setattr(LocalBackend, "utility", utility)


def live(folder: Path, seed: int, nights: int, **release: Any) -> None:
    account = Account(folder, People(seed), series_config(folder, **release))
    brings = ["many", *BRINGS, *account.random.choices(BRINGS, k=nights)][:nights]
    account.random.shuffle(brings)
    for each in brings:
        account.night(each)
    account.check(CRITERIA)
    if account.parts.keys() > account.before.keys():  # whoever comes later is safe beside all, also by what was added
        later = [criterion for criterion in account.config["privacy"] if "ck_safety" in criterion]
        assert anon.check(account.config | {"privacy": later}, folder / "out").safe
    assert len(account.parts) > 3


@pytest.mark.usefixtures("one_utility")
@pytest.mark.parametrize(("seed", "release"), [(1, {}), (3, {"form": "bucketized"})])
def test_thirty_nights_of_whatever_may_happen_are_safe_together(
    tmp_path: Path, seed: int, release: dict[str, Any]
) -> None:
    live(tmp_path, seed, NIGHTS, **release)


@pytest.mark.long
@pytest.mark.usefixtures("one_utility")
@pytest.mark.parametrize("form", ["generalized", "bucketized"])
@pytest.mark.parametrize("seed", range(10, 30))
def test_many_series_of_thirty_nights_are_safe_together(tmp_path: Path, seed: int, form: str) -> None:
    live(tmp_path, seed, NIGHTS, form=form)
