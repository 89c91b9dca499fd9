"""report.html in a real browser: drawn without errors, usable by keyboard and by screen readers, on a phone, in the
dark and on paper."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import anon
from anon.report.page import PARTS
from tests.helpers import browser
from tests.helpers.browser import Browser
from tests.report.test_report_page import HOSTILE, SKYLINE, rows

MISSING = "chromium is not installed (apt-get install chromium)"
pytestmark = pytest.mark.skipif(browser.installed() is None, reason=MISSING)

PRIVACY: dict[str, list[dict[str, Any]]] = {
    "partition": SKYLINE,
    "lattice": [{"k_anonymity": {"k": 5}}, {"l_diversity": {"kind": "distinct", "l": 2}}],
}
NARROW, WIDE = 360, 1280
SOLID = "document.querySelector('#skyline-solid').innerHTML"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of a run by each method; the names of the second one look like code."""
    found = {}
    for kind, privacy in PRIVACY.items():
        folder, table = tmp_path_factory.mktemp(kind), rows(4_000)
        quasi: dict[str, Any] = {"age": {"intervals": [5, 20]}, "zip": {"digits": 5}}
        if kind == "lattice":
            table[HOSTILE] = np.where(table["age"] % 2 == 0, "x", "y")
            quasi[HOSTILE] = {"suppress": True}
        config = {
            "source": {"path": str(folder / "table.parquet")},
            "columns": {"individual": "row", "quasi_identifiers": quasi, "sensitive": ["disease"]},
            "privacy": privacy,
            "method": {"kind": kind},
            "release": {"path": str(folder / "out"), "run": str(folder / "run")},
            "limits": {"memory": "1GB", "threads": 2, "temp": str(folder / "spill")},
        }
        anon.run(config, pa.table(table))
        found[kind] = folder / "run" / "report.html"
    return found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with Browser() as running:
        yield running


@pytest.fixture(params=PRIVACY)
def page(request: pytest.FixtureRequest, pages: dict[str, Path], chromium: Browser) -> Browser:
    """The page of a run by each method on a wide screen."""
    return opened(chromium, pages[request.param])


@pytest.fixture
def partition(pages: dict[str, Path], chromium: Browser) -> Browser:
    return opened(chromium, pages["partition"])


def opened(chromium: Browser, path: Path, width: int = WIDE) -> Browser:
    chromium.media()
    chromium.screen(width)
    chromium.open(path)
    return chromium


def choose(page: Browser, name: str, value: Any, kind: str = "change") -> None:
    """Sets a control as a user would."""
    page.js(
        f"(() => {{ const at = document.getElementById({json.dumps(name)}); at.value = {json.dumps(value)}; "
        f"at.dispatchEvent(new Event({json.dumps(kind)})); }})()"
    )


def told(page: Browser, selector: str) -> str:
    """The text of an element."""
    return str(page.js(f"document.querySelector({json.dumps(selector)}).textContent"))


def test_a_page_opens_without_errors_and_asks_for_nothing(page: Browser) -> None:
    assert page.said == []
    assert [address for address in page.asked if not address.startswith("file:")] == [] and len(page.asked) == 1


def test_every_chart_is_drawn_and_named(page: Browser) -> None:
    shapes = page.js(
        "[...document.querySelectorAll('.chart, .stage')].map("
        "each => each.querySelectorAll('svg :is(rect, path, circle)').length)"
    )
    assert len(shapes) >= 9 and min(shapes) > 2
    names = page.js("[...document.querySelectorAll('svg[role=img]')].map(each => each.getAttribute('aria-label'))")
    assert len(names) >= len(shapes) and min(map(len, names)) > 10


def test_nothing_of_a_chart_is_not_a_number_or_outside_of_it(page: Browser) -> None:
    assert "NaN" not in page.js("document.querySelector('main').innerHTML")
    assert "undefined" not in page.js("document.querySelector('main').innerText")


def test_choosing_a_value_or_a_confidence_changes_the_skyline(partition: Browser) -> None:
    seen = {(partition.js(SOLID), told(partition, "#skyline-summary"))}
    for name, value in (("skyline-value", 1), ("skyline-confidence", 0)):
        choose(partition, name, value)
        seen.add((partition.js(SOLID), told(partition, "#skyline-summary")))
    assert len(seen) == 3
    name = partition.js("document.querySelector('#skyline-value').selectedOptions[0].text")
    assert name in told(partition, "#skyline-table caption")


def test_a_slice_is_cut_where_the_slider_says(partition: Browser) -> None:
    slice_of = "document.querySelector('#skyline-slice svg').getAttribute('aria-label')"
    before = partition.js(slice_of)
    for axis in "klm":
        choose(partition, "slice-axis", axis)
        after = partition.js(slice_of)
        assert f"({axis})" in after.split(":")[0]
    assert after != before
    choose(partition, "slice-at", 1, "input")
    assert partition.js(slice_of).startswith("With 1 ")


def test_the_skyline_is_turned_by_keys_buttons_and_mouse(partition: Browser) -> None:
    seen = {partition.js(SOLID)}
    partition.js("document.querySelector('#skyline-solid').focus()")
    for key in ("ArrowLeft", "ArrowUp", "PageUp"):
        partition.key(key)
        seen.add(partition.js(SOLID))
    for _ in range(2):
        partition.js("document.querySelector('[data-turn=right]').click()")
    seen.add(partition.js(SOLID))
    x, y = partition.js(
        "(() => { const at = document.querySelector('#skyline-solid'); "
        "at.scrollIntoView({block: 'center', behavior: 'instant'}); const box = at.getBoundingClientRect(); "
        "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    partition.mouse("mousePressed", x, y)
    partition.mouse("mouseMoved", x + 60, y + 30)
    partition.mouse("mouseReleased", x + 60, y + 30)
    seen.add(partition.js(SOLID))
    assert len(seen) == 6


def test_the_map_of_cuts_is_walked_by_keys_and_zoomed(partition: Browser) -> None:
    assert told(partition, "#map-summary").startswith("the whole table")
    partition.js("document.querySelector('#map').focus()")
    partition.key("ArrowDown")
    first = told(partition, "#map-summary")
    assert "part 1 of" in first
    partition.key("ArrowRight")
    assert "part 2 of" in told(partition, "#map-summary")
    partition.key("ArrowLeft")
    partition.key("Enter")
    assert partition.js("document.querySelector('#map rect').getAttribute('data-node')") != "0"
    assert partition.js("document.querySelector('#map-out').disabled") is False
    partition.key("Escape")
    assert partition.js("document.querySelector('#map rect').getAttribute('data-node')") == "0"
    assert told(partition, "#map-summary") == first


def test_the_lattice_shows_safe_minimal_and_released_nodes(pages: dict[str, Path], chromium: Browser) -> None:
    page = opened(chromium, pages["lattice"])
    facts = json.loads((pages["lattice"].parent / "report.json").read_text())
    kinds = ("safe", "minimal", "released", "unsafe")
    drawn = [page.js(f"document.querySelectorAll('#lattice-map .node.{kind}').length") for kind in kinds]
    every, safe = (sum(row[kind] for row in facts["lattice_nodes"]["heights"]) for kind in ("nodes", "safe"))
    assert sum(drawn) == every and sum(drawn[:3]) == safe
    assert drawn[1:3] == [len(facts["lattice"]["minimal"]) - 1, 1]
    page.js("document.querySelector('#lattice-map').focus()")
    before = told(page, "#lattice-summary")
    page.key("ArrowUp")
    assert told(page, "#lattice-summary") != before


def test_everything_that_takes_the_focus_has_a_name(page: Browser) -> None:
    controls = page.controls()
    assert len(controls) > 12 and not [role for role, name in controls if not name.strip()]


def test_headings_and_tables_are_in_order(page: Browser) -> None:
    levels = page.js("[...document.querySelectorAll('h1, h2, h3')].map(each => Number(each.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1 and all(b - a <= 1 for a, b in pairwise(levels))
    captions = page.js("[...document.querySelectorAll('table')].map(each => each.caption.textContent.trim())")
    assert all(captions) and len(captions) > 6
    charts = page.js("document.querySelectorAll('figure .chart[data-chart]').length")
    assert page.js("document.querySelectorAll('main details table').length") >= charts


def test_the_focus_can_be_seen(partition: Browser) -> None:
    partition.js("document.querySelector('#map').focus()")
    partition.key("Tab")
    partition.js("document.querySelector('nav a').focus({focusVisible: true})")
    assert partition.js("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize("kind", PRIVACY)
def test_a_phone_need_not_scroll_sideways(pages: dict[str, Path], chromium: Browser, kind: str) -> None:
    page = opened(chromium, pages[kind], NARROW)
    page.js("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    page.settle()
    assert page.js("document.documentElement.scrollWidth") <= NARROW
    assert clipped(page) == []


def clipped(page: Browser, right: str = "innerWidth") -> list[str]:
    """Texts and shapes of charts that are cut off by the edge of what can be seen."""
    found: list[str] = page.js(
        "[...document.querySelectorAll('.chart svg *, .stage svg *')].filter(each => { "
        "const box = each.getBoundingClientRect(); "
        f"return each.tagName !== 'title' && box.width && (box.left < -1 || box.right > {right} + 1); }})"
        ".map(each => each.outerHTML.slice(0, 90))"
    )
    return found


def test_nothing_is_clipped_in_print(page: Browser) -> None:
    page.media("print", dark=True)
    page.screen(700)
    page.settle()
    assert page.js("document.documentElement.scrollWidth") <= 700 and clipped(page) == []
    cut_off = page.js(
        "[...document.querySelectorAll('.scroll')].filter(each => each.offsetParent && "
        "(each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1)).length"
    )
    assert cut_off == 0
    assert page.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    paper = page.pdf()
    assert paper.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", paper)) >= 3


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_what_is_behind_it(partition: Browser, dark: bool) -> None:
    partition.media(dark=dark)
    names = sorted(set(re.findall(r"--[a-z0-9-]+(?=:)", (PARTS / "style.css").read_text())))
    own = f"{json.dumps(names)}.map(name => getComputedStyle(document.documentElement).getPropertyValue(name).trim())"
    colour = dict(zip(names, partition.js(own)))
    pairs = [
        *(("--ink", behind) for behind in ("--paper", "--wash", "--bad-wash")),
        *(("--muted", behind) for behind in ("--paper", "--wash")),
        *(("--accent", "--paper"), ("--good", "--good-wash"), ("--bad", "--bad-wash"), ("--group-ink", "--group")),
        *((f"--on{i}", f"--c{i}") for i in range(8)),
    ]
    weak = {pair: contrast(*(colour[name] for name in pair)) for pair in pairs}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}
    shapes = {name: contrast(colour[name], colour["--paper"]) for name in ("--c0", "--bad", "--r3", "--muted")}
    assert min(shapes.values()) >= 3, shapes
    assert (luminance(colour["--paper"]) < 0.1) == dark
