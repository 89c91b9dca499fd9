"""The figures of the papers: their printed numbers come out of the commands, and the page is what was kept of them."""

from __future__ import annotations

import pytest
from bench import paper

from papers import worked_examples
from papers.figure import FIGURES, KEPT, PAPERS, Findings
from papers.page import PAGE, page


def rows(found: Findings) -> list[tuple[object, ...]]:
    return [tuple(row) for row in found.tables[0].rows]


def test_every_figure_has_results_and_the_page_shows_them() -> None:
    assert {id for id in FIGURES if not (KEPT / f"{id}.json").exists()} == set()
    assert PAGE.read_text() == page(), "python bench/paper.py page"


def test_every_paper_has_figures() -> None:
    assert {id.split("-")[0] for id in FIGURES} == set(PAPERS)


def test_an_unknown_figure_is_refused_with_those_there_are() -> None:
    with pytest.raises(SystemExit, match=r"no figure 002-99; the figures are .*002-15"):
        paper.main(["002-99"])


def test_all_leaves_out_what_takes_long() -> None:
    assert "000-08" not in paper.chosen(["all"], long=False)
    assert paper.chosen(["all"], long=True) == paper.order(FIGURES)
    assert paper.chosen(["000-08"], long=False) == ["000-08"]


def test_the_bounds_of_table_v_are_as_printed_and_tight() -> None:
    for *_, printed, ours, below, above in rows(worked_examples.table_5()):
        assert (printed, below, above) == (ours, "yes", "no")


def test_the_printed_examples() -> None:
    assert rows(worked_examples.tables_1_to_4())[0][2:] == ("0.9736", "0.9736", "no")
    assert [row[2:] for row in rows(worked_examples.table_1())] == [("0.75", "yes"), ("0", "yes")]
    assert [row[2::2] for row in rows(worked_examples.figure_4())] == [("4", "1", "1"), ("4", "3", "2.828")]
    assert [row[2:] for row in rows(worked_examples.figure_6())] == [("0.500", 0), ("0.591", 2)]
    assert [row[2] for row in rows(worked_examples.ward())] == ["0.4000", "0.6667", "1.0000"]
