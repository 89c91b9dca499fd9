"""report.json and report.html: what they tell, how large they are, and that nothing of the data is taken for code."""

from __future__ import annotations

import json
import re
import stat
from collections import Counter
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import anon
from anon.artifacts.reading import VERSIONS, read_report
from anon.cli.app import app
from anon.config import CRITERIA
from anon.core.phrases import below, percent
from anon.criteria import Groups
from anon.report.page import render
from anon.report.recoding_shape import CHILDREN, NODES
from anon.report.view_groups import _bins
from anon.risk.sections import Sections, rungs, sections
from anon.risk.skylines import skylines
from tests.conftest import House

HOSTILE = "</script><script>alert('x')</script><!--\"&{{ 7*7 }}"
SKYLINE = [
    {
        "skyline": {
            "points": [{"l": 1, "k": 1, "m": 0, "c": 0.9}],
            "values": {"flu": [{"l": 0, "k": 2, "m": 1, "c": 0.8}]},
        }
    }
]


def rows(count: int = 600) -> dict[str, Any]:
    chance = np.random.default_rng(7)
    diseases = np.array(["flu", "SECRET-cold", "SECRET-gout", "SECRET-mumps", "SECRET-none"])
    return {
        "age": chance.integers(18, 90, count),
        "zip": [f"{n:05d}" for n in chance.integers(10_000, 10_060, count)],
        "disease": diseases[chance.integers(0, 5, count)],
    }


def files(house: House) -> tuple[dict[str, Any], str]:
    folder = house.folder / "out-run"
    return json.loads((folder / "report.json").read_text()), (folder / "report.html").read_text()


def command(*arguments: str) -> tuple[int, str, str]:
    told = CliRunner().invoke(app, ["report", *arguments])
    return told.exit_code, told.stdout, told.stderr


class Landmarks(HTMLParser):
    """What a page is made of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attributes}
        self.tags.append(tag)
        self.ids += [told["id"]] if "id" in told else []
        self.links += [told["href"]] if tag == "a" else []
        self.loads += [value for name, value in told.items() if name == "src" or (name == "href" and tag != "a")]
        self.handlers += [name for name in told if name.startswith("on") or name == "style"]


@pytest.mark.parametrize("method", [{"kind": "partition"}, {"kind": "lattice"}])
def test_a_run_leaves_a_page_beside_its_report_for_the_house_only(house: House, method: dict[str, Any]) -> None:
    house.write(rows())
    told = house.cli("run", method=method, privacy=[{"k_anonymity": {"k": 3}}])
    assert told.code == 0 and "out-run/report.html" in told.stdout.replace("\n", "")
    report, page = files(house)
    assert report["version"] == VERSIONS["report.json"][-1] and page.startswith("<!doctype html>")
    assert stat.S_IMODE((house.folder / "out-run").stat().st_mode) == 0o700
    assert ("tree" in report) == ("How the table was cut" in page) == (method["kind"] == "partition")
    assert ("lattice_nodes" in report) == ("The combinations of levels" in page) == (method["kind"] == "lattice")


def test_a_page_needs_nothing_from_elsewhere_and_has_its_landmarks(house: House) -> None:
    house.write(rows())
    house.run(privacy=SKYLINE)
    found = Landmarks(files(house)[1])
    assert found.loads == [] and found.handlers == []
    assert len(found.ids) == len(set(found.ids))
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert [tag for tag in found.tags if tag in ("header", "nav", "main", "footer", "h1")] == [
        "header", "h1", "nav", "main", "footer"
    ]  # fmt: skip
    assert found.tags.count("script") == 2 and found.tags.count("style") == 1


def test_no_value_of_the_data_is_in_report_or_page_unless_asked_for(house: House) -> None:
    house.write(rows())
    for show in (False, True):
        anon.run(house.config(privacy=SKYLINE), overwrite=True, show_values=show)
        for text in (json.dumps(files(house)[0]), files(house)[1]):
            assert ("SECRET-" in text) == show
            assert ("1001*" in text) == show, "labels are cells of the data"
            assert "flu" in text, "the config names it"
        assert ("This page shows data values" in files(house)[1]) == show


def test_names_that_look_like_code_stay_text(house: House) -> None:
    table = rows()
    table = {
        HOSTILE: table["age"],
        "zip": table["zip"],
        f"d{HOSTILE}": np.where(table["disease"] == "flu", HOSTILE, "other"),
    }
    columns = {
        "individual": "row",
        "quasi_identifiers": {HOSTILE: {}, "zip": {"digits": 5}},
        "sensitive": [f"d{HOSTILE}"],
    }
    points = {HOSTILE: [{"l": 0, "k": 1, "m": 1, "c": 0.99}]}
    anon.run(
        house.config(columns=columns, privacy=[{"skyline": {"points": [], "values": points}}]),
        pa.table(table), overwrite=True, show_values=True,
    )  # fmt: skip
    report, page = files(house)
    assert HOSTILE in json.dumps(report, ensure_ascii=False).replace('\\"', '"')
    assert HOSTILE not in page and "alert('x')" not in page and "49" not in re.findall(r"<!--.{0,20}", page)
    tags = Landmarks(page).tags
    assert tags.count("script") == 2
    data = re.search(r'<script type="application/json" id="facts">(.*?)</script>', page, re.DOTALL)
    assert data is not None and HOSTILE in json.loads(data[1])["cuts"]["columns"]


def test_the_page_is_rendered_again_from_the_report_alone(house: House) -> None:
    house.write(rows())
    house.run(privacy=SKYLINE)
    folder, page = house.folder / "out-run", files(house)[1]
    elsewhere = house.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "report.json").write_bytes((folder / "report.json").read_bytes())
    code, said, _ = command(str(elsewhere))
    assert code == 0 and "report.html" in said.replace("\n", "")
    assert (elsewhere / "report.html").read_text() == page
    code, said, _ = command(str(folder), "--out", str(house.folder / "page.html"), "--json")
    assert code == 0 and json.loads(said) == {"page": str(house.folder / "page.html"), "bytes": len(page.encode())}
    assert (house.folder / "page.html").read_text() == page
    assert stat.S_IMODE((house.folder / "page.html").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (None, "where no report.json is"),
        ("", "damaged"),
        ("[]", "damaged"),
        ("{}", "damaged"),
        ("[" * 100_000, "damaged"),
        ('{"version": 1}', "version 1"),
        (f'{{"version": {VERSIONS["report.json"][-1]}}}', "damaged"),
    ],
)
def test_a_folder_without_a_report_that_can_be_shown_is_refused(tmp_path: Path, report: str | None, words: str) -> None:
    if report is not None:
        (tmp_path / "report.json").write_text(report)
    code, _, said = command(str(tmp_path))
    assert code == 2 and words in said and not (tmp_path / "report.html").exists()


def test_places_and_values_that_cannot_be_had_are_refused(house: House) -> None:
    house.write(rows())
    house.run()
    folder = str(house.folder / "out-run")
    assert command(folder, "--out", folder)[0] == 2
    assert command(folder, "--out", str(house.folder / "no" / "page.html"))[0] == 2
    code, _, said = command(folder, "--show-values")
    assert code == 2 and "did not record values" in said


def test_every_criterion_has_its_sentences() -> None:
    assert [name for name, model in CRITERIA.items() if "sentences" not in vars(model)] == []


def test_percentages_are_told_apart_from_their_bounds() -> None:
    assert [percent(share) for share in (0, 0.0005, 0.2, 0.3333, 0.9995, 1)] == [
        "0%", "0.05%", "20%", "33.3%", "99.95%", "100%"
    ]  # fmt: skip
    assert below(0.1999999, 0.2) != percent(0.2) and below(0.2, 0.2) == "20%"


@given(st.dictionaries(st.integers(1, 3_000), st.integers(1, 50), min_size=1, max_size=60))
def test_classes_of_sizes_hold_every_group_once(sizes: dict[int, int]) -> None:
    bins = _bins(sorted(sizes.items()))
    assert len(bins) <= 32
    assert sum(b["groups"] for b in bins) == sum(sizes.values())
    assert sum(b["individuals"] for b in bins) == sum(size * count for size, count in sizes.items())


def test_the_tree_of_a_report_adds_up(house: House) -> None:
    house.write(rows(2_000))
    result = house.run(privacy=[{"k_anonymity": {"k": 2}}])
    nodes, told = result.report["tree"], result.facts
    assert nodes[0]["individuals"] == told["individuals"] and nodes[0]["groups"] == told["groups"]
    leaves = [node for node in nodes if "group" in node]
    assert sorted(node["group"] for node in leaves) == list(range(told["groups"]))
    for at, node in enumerate(nodes):
        below = [other for other in nodes if other.get("above") == at]
        assert ("split" in node) == bool(below)
        if below:
            assert sum(other["individuals"] for other in below) == node["individuals"]
            assert sum(other.get("groups", 1) for other in below) == node["groups"]
            assert min(other.get("smallest", other["individuals"]) for other in below) == node["smallest"]
    assert sum(column["cuts"] for column in result.report["columns"]) == sum("split" in node for node in nodes)


def test_many_parts_of_a_cut_are_put_together(house: House) -> None:
    table = rows(40_000)
    table["zip"] = [f"{n:05d}" for n in np.random.default_rng(1).integers(0, 3_000, 40_000)]
    house.write(table)
    columns = {
        "individual": "row",
        "quasi_identifiers": {"zip": {"suppress": True}, "age": {}},
        "sensitive": ["disease"],
    }
    result = house.run(columns=columns, privacy=[{"k_anonymity": {"k": 2}}])
    nodes = result.report["tree"]
    assert 1 < len(nodes) <= NODES
    first = [node for node in nodes if node.get("above") == 0]
    (rest,) = (node for node in first if "together" in node)
    assert len(first) == CHILDREN and rest["together"] == 3_000 - (CHILDREN - 1)
    assert sum(node["individuals"] for node in first) == 40_000
    assert min(node["individuals"] for node in first) >= rest["smallest"]


def test_the_lattice_of_a_report_says_which_nodes_are_safe(house: House) -> None:
    house.write(rows())
    report = house.run(method={"kind": "lattice"}, privacy=[{"k_anonymity": {"k": 3}}]).report
    nodes, found = report["lattice_nodes"], report["lattice"]
    shape = [top + 1 for top in nodes["levels"]]
    safe = np.array([int(each) for each in nodes["safe"]]).reshape(shape)
    assert [sum(row[kind] for row in nodes["heights"]) for kind in ("nodes", "safe")] == [safe.size, safe.sum()]
    minimal = {tuple(choice["levels"].values()) for choice in found["minimal"]}
    for node in np.ndindex(*shape):
        above = any(all(a >= b for a, b in zip(node, low)) for low in minimal)
        assert bool(safe[node]) == above


def test_shares_of_sensitive_values_are_those_of_the_release(house: House) -> None:
    house.write(rows())
    (facts,) = house.run(privacy=SKYLINE).report["sensitive"]
    released = house.released().to_pylist()
    groups: dict[tuple[Any, ...], list[str]] = {}
    for row in released:
        groups.setdefault((row["age"], row["zip"]), []).append(row["disease"])
    highest: dict[str, Fraction] = {}
    most = [0] * 101
    for members in groups.values():
        shares = {value: Fraction(members.count(value), len(members)) for value in set(members)}
        most[int(max(shares.values()) * 100)] += len(members)
        for value, share in shares.items():
            highest[value] = max(highest.get(value, Fraction(0)), share)
    assert facts["largest_share"]["individuals"] == most
    assert facts["values"][0]["value"] == "flu" and facts["values"][0]["highest"] == float(highest["flu"])
    assert sorted(each["highest"] for each in facts["values"]) == sorted(map(float, highest.values()))


counts = st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any), min_size=1, max_size=4)


@settings(deadline=None)
@given(counts, st.sampled_from([Fraction(1, 2), Fraction(3, 4), Fraction(95, 100), Fraction(1)]))
def test_sections_are_those_of_the_whole_skyline(table: list[list[int]], confidence: Fraction) -> None:
    groups = Groups.dense(np.array(table))
    if not any(row[0] for row in table):
        return
    (whole,) = skylines([groups], [0], [confidence])
    (entry,) = sections([groups], [0], [confidence], "single", str)
    (told,) = entry["skylines"]
    assert told["complete"]
    region = {(level["l"], k, m) for level in told["levels"] for top, m in level["stairs"] for k in range(top + 1)}
    inside = {(level["l"], k, m) for level in told["levels"] for top, most in level["stairs"]
              for k in range(top + 1) for m in range(most + 1)}  # fmt: skip
    points = {(int(p.l), int(p.k), int(p.m)) for p in whole.points}
    assert points <= region or not points
    assert inside == {(a, b, c) for l, k, m in points
                      for a in range(l + 1) for b in range(k + 1) for c in range(m + 1)}  # fmt: skip
    assert entry["curves"]["k"][0][1] == pytest.approx(max(row[0] / sum(row) for row in table))


def test_long_ranges_are_told_in_steps_that_are_exact() -> None:
    groups = Groups.dense(np.array([[3, 400, 500], [9, 800, 700]]))
    ((entry,),) = [sections([groups], [0], [Fraction(1, 2)], "single", str)]
    (told,) = entry["skylines"]
    assert not told["complete"] and sum(len(level["stairs"]) for level in told["levels"]) < 400
    (whole,) = skylines([groups], [0], [Fraction(1, 2)])
    for level in told["levels"]:
        for k, m in level["stairs"]:
            above = [p for p in whole.points if p.l >= level["l"] and p.k >= k]
            assert m == max(p.m for p in above)
    assert Sections and rungs(5, 10) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("count", "values", "k"), [(260_000, 5, 2), (60_000, 10_000, 200)])
def test_many_groups_or_values_make_a_small_page(house: House, count: int, values: int, k: int) -> None:
    chance = np.random.default_rng(3)
    table = {name: chance.integers(0, 5_000, count) for name in "ab"}
    table["s"] = chance.permutation(np.arange(count) % values).astype(str)
    columns = {"individual": "row", "quasi_identifiers": {"a": {}, "b": {}}, "sensitive": ["s"]}
    skyline = {"skyline": {"points": [{"l": 0, "k": 0, "m": 0, "c": 1}]}}
    result = house.run(pa.table(table), columns=columns, privacy=[{"k_anonymity": {"k": k}}, skyline])
    assert result.facts["groups"] > 90_000 or len(result.facts["criteria"][1]["points"]) == 10_000
    folder = house.folder / "out-run"
    assert (folder / "report.html").stat().st_size < 1_000_000
    assert (folder / "report.json").stat().st_size < 8_000_000


def test_a_report_is_rendered_alike_again(house: House) -> None:
    house.write(rows())
    house.run(privacy=SKYLINE)
    _, page = files(house)
    assert render(read_report(house.folder / "out-run")) == page


def test_attacks_in_the_report_are_those_that_the_commands_find(house: House) -> None:
    draw = Random(3)
    diseases = [draw.choice("aaaabbcd") for _ in range(90)]
    house.write({"age": list(range(90)), "zip": ["00000"] * 90, "disease": diseases})
    report = house.run(privacy=[{"k_anonymity": {"k": 3}}]).report
    (facts,) = report["sensitive"]
    config, table = house.config(), house.folder / "out" / "release.parquet"
    told = anon.disclose(config, table, 8).to_dict()
    for kind in ("implications", "negations"):
        assert facts["disclosure"][kind] == told[kind]
    assert facts["disclosure"]["worst"] == [each["sentence"] for each in told["worst"]["implications"][:4]]
    steps = anon.attack(config, table).to_dict()["elimination"]
    found = [(each["groups"], each["individuals"]) for each in facts["elimination"]["affected"]]
    assert found == [(step["affected_groups"], step["affected_rows"]) for step in steps] and found[-1][0]
    page = (house.folder / "out-run" / "report.html").read_text()
    assert "values ruled out" in page and 'data-chart="disclosure"' in page


def test_groups_with_exact_values_have_the_numbers_of_the_files(house: House) -> None:
    """Cells are numbered by their labels, where 100 comes before 20; the files by the values."""
    sizes = {20: 3, 100: 4, 110: 5, 3: 6}
    house.write({"age": [a for a, n in sizes.items() for _ in range(n)], "zip": ["00000"] * 18, "disease": ["a"] * 18})
    exact = {"path": "out", "run": "out-run", "form": "bucketized", "labels": "exact"}
    result = house.run(privacy=[{"group_size": {"k": 3}}], release=exact)
    qi = pq.ParquetFile(house.folder / "out" / "qi.parquet").read()
    counted = Counter(qi["group"].to_pylist())
    assert {n["group"]: n["individuals"] for n in result.report["tree"] if "group" in n} == counted
    assert len(counted) == 4 and result.report["blocking"]["finest"]["groups"] == 4


def test_a_skyline_tells_figure_bound_and_group_of_one_point(house: House) -> None:
    """The largest breach is far from its bound, a smaller one close to its own; words tell of the close one."""
    points = [{"l": 0, "k": 2, "m": 0, "c": 1}, {"l": 0, "k": 0, "m": 0, "c": 0.51}]
    table = pa.table({"age": ["1"] * 10 + ["2"] * 10, "zip": ["0"] * 20, "disease": [*("ab" * 5), *("abcde" * 2)]})
    changes: dict[str, Any] = {"privacy": [{"skyline": {"points": points}}]}
    (entry,) = house.check(table, **changes).to_dict()["criteria"]
    assert (entry["figure"], entry["bound"], entry["worst_group"]) == (pytest.approx(5 / 8), 1, 0)
    on = house.write(table, "grouped.parquet")
    assert re.search(r"yes +0\.5 +< 0\.51", house.cli("check", "--on", str(on), **changes).stdout)
