"""Prior files: what is read, what is refused, and that what is written is read again as it was."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.core.memory import LIBRARIES
from anon.criteria.prior_files import read_prior
from anon.criteria.prior_tables import Ratios, SignatureTable
from anon.criteria.priors import Prior, estimate, write_prior
from anon.criteria.priors import bind as bind_to
from anon.errors import ConfigError, ResourceError

GOOD = "sex,value,p\nm,flu,0.1\nm,hiv,0.9\nf,flu,0.003\nf,hiv,0.997\n"
WHERE = "privacy[0].r_robustness.priors[0].file"


def file(folder: Path, content: str) -> Path:
    path = folder / "prior.csv"
    path.write_text(content)
    return path


def bind(
    path: Path, attributes: list[str], signatures: Sequence[tuple[str | None, ...]], values: list[str | None]
) -> Prior:
    return bind_to(read_prior(path, WHERE), attributes, SignatureTable.from_signatures(signatures), values, WHERE)


def facts(prior: Prior) -> tuple[object, ...]:
    n = None if prior.n is None else prior.n.tolist()
    return prior.attributes, list(prior.signatures), prior.values, list(prior.p), n


def refused(folder: Path, content: str, signatures: list[tuple[str | None, ...]] | None = None) -> str:
    path, known = file(folder, content), signatures or [("f",), ("m",)]
    with pytest.raises(ConfigError) as error:
        bind(path, ["sex"], known, ["flu", "hiv"])
    assert all(problem.path == WHERE for problem in error.value.problems)
    assert not any(secret in str(error.value) for secret in ("flu", "hiv", "0.003"))
    return str(error.value)


def test_probabilities_are_the_decimals_of_the_file_in_the_order_of_the_data(tmp_path: Path) -> None:
    prior = bind(file(tmp_path, GOOD), ["sex"], [("f",), ("m",)], ["hiv", "flu"])
    assert list(prior.p) == [[Fraction("0.997"), Fraction("0.003")], [Fraction("0.9"), Fraction("0.1")]]
    assert not prior.binary


def test_attributes_come_in_the_order_asked_for(tmp_path: Path) -> None:
    prior = bind(file(tmp_path, "p;age;value;sex;n\n1;41;flu;m;7\n"), ["sex", "age"], [("m", "41")], ["flu"])
    assert facts(prior)[3:] == ([[Fraction(1)]], [7])


def test_a_file_that_leaves_values_out_is_binary(tmp_path: Path) -> None:
    prior = bind(file(tmp_path, "sex,value,p\nm,flu,0.1\nf,flu,0.003\n"), ["sex"], [("m",), ("f",)], ["hiv", "flu"])
    assert prior.binary
    assert prior.named == [1]
    assert list(prior.p) == [[None, Fraction("0.1")], [None, Fraction("0.003")]]


def test_values_that_the_table_lost_count_for_the_sum(tmp_path: Path) -> None:
    assert not bind(file(tmp_path, GOOD), ["sex"], [("m",)], ["flu"]).binary


def test_an_empty_field_is_a_null(tmp_path: Path) -> None:
    path = file(tmp_path, "sex,value,p\n,flu,0.25\n,,0.75\n")
    prior = bind(path, ["sex"], [(None,)], ["flu", None])
    assert list(prior.p) == [[Fraction(1, 4), Fraction(3, 4)]]
    with pytest.raises(ConfigError, match="nulls and with empty texts"):
        bind(path, ["sex"], [(None,), ("",)], ["flu", None])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "without a line"),
        ("sex,p\nm,0.1\n", "line 1: no column value"),
        ("value,p\nflu,0.1\n", "line 1: no attribute"),
        ("sex,sex,value,p\n", "two of one name"),
        (GOOD + "m,flu\n", "line 6: 2 fields"),
        (GOOD + "m,flu,0.1\n", "line 6: the attributes and the value of line 2 again"),
        (GOOD.replace("0.9\n", "0.91\n"), "line 2: the probabilities of these attributes sum to more than 1"),
        (GOOD.replace("0.9\n", "0.89\n"), "1 combinations of attributes that do not sum to 1"),
        (GOOD.replace("0.1\n", "1.1\n"), "line 2: no probability"),
        (GOOD.replace("0.1\n", "-0.1\n"), "line 2: no probability"),
        (GOOD.replace("0.1\n", "nan\n"), "line 2: no probability"),
        (GOOD.replace("0.1\n", "1e-999999999\n"), "line 2: no probability"),
        (GOOD.replace("0.1\n", "\n"), "line 2: no probability"),
        (GOOD.replace("f,hiv,0.997\n", ""), "1 such lines missing"),
        (GOOD.replace("f,flu,0.003\nf,hiv,0.997\n", ""), "no line for 1 of the 2 combinations of sex"),
        (GOOD.replace("flu", "cold").replace("hiv", "ache"), "none of the 2 values"),
        (GOOD.replace("sex", "age"), "columns age"),
        ("sex,value,p,n\nm,flu,1,4\nm,hiv,0,5\n", "line 3: another n than line 2"),
        ("sex,value,p,n\nm,flu,1,-4\n", "line 2: no number of people"),
    ],
)
def test_mistakes_are_told_by_line_or_count_and_quote_no_value(tmp_path: Path, content: str, message: str) -> None:
    assert message in refused(tmp_path, content)


def test_a_signature_that_is_missing_is_not_a_probability_of_zero(tmp_path: Path) -> None:
    assert "1 of the 3" in refused(tmp_path, GOOD, [("m",), ("f",), (None,)])


def test_rounding_of_a_billionth_is_forgiven_in_sums(tmp_path: Path) -> None:
    thirds = "sex,value,p\nm,flu,0.3333333333\nm,hiv,0.6666666666\n"
    assert bind(file(tmp_path, thirds), ["sex"], [("m",)], ["flu", "hiv"]).p


def test_an_estimate_has_no_zeros_and_sums_to_one() -> None:
    rows = estimate(np.array([[3, 0, 1], [0, 0, 0]]), Fraction("0.5"))
    assert list(rows) == [[Fraction(7, 11), Fraction(1, 11), Fraction(3, 11)], [Fraction(1, 3)] * 3]


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=3)
fields = st.none() | texts.filter(bool)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(fields, fields), min_size=1, max_size=4, unique=True),
    st.lists(fields, min_size=1, max_size=4, unique=True),
    st.lists(st.integers(0, 9), min_size=16, max_size=16),
    st.sampled_from([Fraction(1), Fraction(1, 3), Fraction("0.1")]),
    st.booleans(),
)
def test_what_is_written_is_read_again_exactly(
    tmp_path_factory: pytest.TempPathFactory,
    signatures: list[tuple[str | None, ...]],
    values: list[str | None],
    numbers: list[int],
    smoothing: Fraction,
    with_n: bool,
) -> None:
    counts = np.array(numbers)[: len(signatures) * len(values)].reshape(len(signatures), len(values))
    n = counts.sum(axis=1).tolist() if with_n else None
    prior = Prior.from_rows(["a", "b"], signatures, values, list(estimate(counts, smoothing)), n)
    path = tmp_path_factory.mktemp("prior") / "prior-1.csv"
    write_prior(prior, path)
    assert facts(bind(path, ["a", "b"], signatures, values)) == facts(prior)


def test_written_probabilities_are_numbers_to_every_reader(tmp_path: Path) -> None:
    write_prior(Prior.from_rows(["sex"], [("m",)], ["a", "b"], [[Fraction(1, 3), Fraction(2, 3)]]), tmp_path / "p.csv")
    lines = [line.split(",") for line in (tmp_path / "p.csv").read_text().splitlines()]
    assert lines[0] == ["sex", "value", "p", "p_exact"]
    assert [float(line[2]) for line in lines[1:]] == [1 / 3, 2 / 3]


def test_a_binary_prior_is_written_without_what_it_does_not_name(tmp_path: Path) -> None:
    prior = Prior.from_rows(["sex"], [("m",), ("f",)], ["a", "b"], [[None, Fraction("0.1")], [None, Fraction("0.2")]])
    write_prior(prior, tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == "sex,value,p\nm,b,0.1\nf,b,0.2\n"
    assert facts(bind(tmp_path / "p.csv", ["sex"], list(prior.signatures), prior.values)) == facts(prior)


def test_an_attribute_named_like_a_column_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="other names"):
        write_prior(Prior.from_rows(["n"], [("1",)], ["a"], [[Fraction(1)]]), tmp_path / "p.csv")


def test_fractions_of_any_length_are_kept_exactly() -> None:
    small = [Fraction(1, 3), Fraction(2, 6), Fraction(0), Fraction(1), Fraction(2**53 + 1, 2**60)]
    listed = [*small, Fraction(1, 3**50), Fraction(10**40 - 1, 10**40), Fraction(1, 3**50)]
    ratios, places = Ratios.from_fractions(listed)
    assert [ratios[at] for at in places.tolist()] == listed
    assert len(ratios.numerator) == len(set(listed))
    assert ratios.floats[places].tolist() == [float(each) for each in listed]
    assert ratios.complements[places].tolist() == [float(1 - each) for each in listed]


def test_lines_may_come_in_any_order(tmp_path: Path) -> None:
    lines = [f"{a},{b},{v},{p},{100 + a}" for a in range(5) for b in range(4) for v, p in (("x", "0.25"), ("y", ".75"))]
    known = [(str(a), str(b)) for a in range(5) for b in range(4)]
    wanted = facts(bind(file(tmp_path, "\n".join(["a,b,value,p,n", *lines])), ["a", "b"], known, ["x", "y"]))
    for seed in range(5):
        random.Random(seed).shuffle(lines)
        path = file(tmp_path, "\n".join(["a,b,value,p,n", *lines]))
        assert facts(bind(path, ["a", "b"], known, ["x", "y"])) == wanted
    lines[20:20] = [lines[3]]
    lines.append("4,3,z,0,999")
    with pytest.raises(ConfigError) as error:
        read_prior(file(tmp_path, "\n".join(["a,b,value,p,n", *lines])), WHERE)
    first = min(at for at, line in enumerate(lines, 2) if line.startswith("4,3,"))
    repeated, other = str(error.value).splitlines()
    assert "line 22: the attributes and the value of line 5 again" in repeated
    assert f"line 43: another n than line {first};" in other


def test_a_large_prior_takes_little_memory_and_one_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path, size = tmp_path / "prior.csv", 20_000
    with path.open("w") as lines:
        lines.write("age,zip,value,p,n\n")
        lines.writelines(f"{at % 200},{at // 200},{v},0.1{at % 7},7\n" for at in range(size) for v in ("flu", "hiv"))
    tracemalloc.start()
    try:
        raw = read_prior(path, WHERE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(raw.start) == size + 1
    assert peak < 10_000_000  # dicts of fractions took 37 MB
    with pytest.raises(ResourceError, match=r"prior\.csv, which takes 1 MB; at least 202MB is required"):
        read_prior(path, WHERE, LIBRARIES + 1_000_000)
