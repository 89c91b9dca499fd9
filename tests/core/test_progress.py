"""What a run tells while it works: every stage that begins also ends, and says when it failed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anon.core.progress import Bars, Events, Lines, Progress
from tests.conftest import House

ROWS = {"age": [20, 20], "zip": ["02139"] * 2, "disease": ["Flu", "Cold"]}


def events(stderr: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]


def test_every_stage_of_a_run_begins_and_ends_as_an_event(house: House) -> None:
    house.write(ROWS)
    outcome = house.cli("run", "--log-json")
    told = events(outcome.stderr)
    stages = ["source", "cube", "search", "release", "verify", "utility", "attack", "report"]
    assert [event["stage"] for event in told if event["event"] == "begin"] == stages
    assert [event["stage"] for event in told if event["event"] == "end"] == stages
    assert not any("failed" in event for event in told)
    assert len({event["run"] for event in told}) == 1


def test_the_levels_of_a_search_are_told_also_of_a_table_that_fits_in_memory(house: House) -> None:
    house.write({"age": list(range(32)) * 4, "zip": ["02139"] * 128, "disease": ["Flu", "Cold"] * 64})
    told = events(house.cli("run", "--log-json", privacy=[{"k_anonymity": {"k": 8}}]).stderr)
    levels = [event for event in told if event["event"] == "progress" and "level" in event]
    assert [(event["level"], event["open_nodes"]) for event in levels] == [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16)]
    assert [event["individuals"] for event in levels] == [128] * 5
    percents = [event["percent"] for event in levels if "percent" in event]
    assert percents == sorted(percents) and percents[-1] < 100


def test_a_stage_that_fails_ends_with_an_event_that_says_so(house: House) -> None:
    house.write(ROWS)
    outcome = house.cli("run", "--log-json", privacy=[{"k_anonymity": {"k": 3}}])
    *_, last, failed = events(outcome.stderr)
    assert outcome.code == 3
    assert (last["event"], last["stage"], last["failed"]) == ("end", "search", True)
    assert (failed["event"], failed["exit_code"]) == ("failed", 3)


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize(
    ("kind", "words"),
    [(Progress, ""), (Lines, "search: failed after"), (Events, '"failed": true'), (Bars, "✗ search")],
)
def test_a_failure_ends_its_stage_in_every_way_to_tell(
    kind: type[Progress], words: str, failure: type[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    progress = kind()
    with pytest.raises(failure), progress.stage("search"):
        raise failure
    progress.close()
    assert words in capsys.readouterr().err
    assert "search" in progress.seconds
