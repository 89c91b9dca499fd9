"""anon beside other tools for k-anonymity on the Adult table: `python bench/peers.py [--copies 1,10,100]`.

k = 5, quasi-identifiers age, sex, race, marital status and education. anon cuts all five freely; the peers do what they
do, each in an environment of its own in .cache/peers, made the first time, by a script in bench/peers. Whole processes;
with copies of the rows k is multiplied too. Groups are distinct rows of labels, as a reader of the release sees them;
discernibility is the sum of their squared sizes; NCP of a cell is (high - low) / range for numbers and values / all
values for sets of more than one, on average over all released cells. Results are kept in bench/results/peers.md and
.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import measure
from measure import ANON, DATA, ROOT, Failed, Process, Target, markdown

sys.path.insert(0, str(ROOT))
from demo import adult

SCRIPTS = Path(__file__).parent / "peers"
sys.path.insert(0, str(SCRIPTS))
from shared import CATEGORIES, NAMES, NUMBERS, SENSITIVE, SUPPRESSED  # type: ignore[import-not-found]  # noqa: E402

HOME = ROOT / ".cache" / "peers"
K = 5
ENOUGH = 15  # seconds that anon is measured for; short runs are repeated

# What pip installs for each, and what it does. Some do not name what they need.
PEERS: dict[str, tuple[list[str], str]] = {
    "anonypy": (["anonypy==0.2.1", "pandas<3", "pyarrow"], "Mondrian, sets of categories"),
    "anjana": (["anjana==1.2.3", "pyarrow"], f"full-domain, {SUPPRESSED}% suppressed"),
    "crowds": (["crowds==0.0.1", "pandas<3", "pyarrow"], f"OLA, full-domain, {SUPPRESSED}% suppressed"),
    "anonymity-api": (["anonymity-api==1.0.4", "pandas<3", "pyarrow"], "Mondrian on ranks of categories"),
    "polarfrost": (["polarfrost==0.2.1"], "Mondrian on Polars"),
}

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """One tool on one table; where `wrong` says what happened there are no figures."""

    tool: str
    rows: int
    k: int
    wrong: str = ""
    seconds: float = 0.0
    cpu: float = 0.0
    peak: int = 0
    groups: int = 0
    smallest: int = 0
    suppressed: int = 0
    discernibility: int = 0
    ncp: float = 0.0


@dataclass(frozen=True)
class Domain:
    """The values of the columns, against which labels are judged."""

    low: int
    high: int
    values: dict[str, int]  # how many of each category

    def lost(self, name: str, label: str) -> float:
        """NCP of a cell. Understands the labels of anon and the common form of the peers."""
        if name in NUMBERS:
            low, high = self._ends(label)
            return (high - low) / (self.high - self.low)
        count = self.values[name] if label == "*" else label.count("|") + 1
        return count / self.values[name] if count > 1 else 0.0

    def _ends(self, label: str) -> tuple[int, int]:
        """A band may reach beyond the ages that there are."""
        low, high = self.low, self.high
        if label.startswith("<="):
            high = int(label[2:])
        elif label.startswith(">="):
            low = int(label[2:])
        elif label != "*":
            found = [int(end) for end in re.findall(r"\d+", label)]
            low, high = max(found[0], low), min(found[-1], high)
        return low, high


def judged(found: Found, process: Process, domain: Domain, groups: Iterable[tuple[Labels, int]]) -> Found:
    """The figures of a release and of the process that made it."""
    sizes, lost = [], 0.0
    for labels, size in groups:
        sizes.append(size)
        lost += size * sum(domain.lost(name, label) for name, label in zip(NAMES, labels))
    figures = {
        "groups": len(sizes), "smallest": min(sizes), "suppressed": found.rows - sum(sizes),
        "discernibility": sum(size * size for size in sizes), "ncp": lost / (sum(sizes) * len(NAMES)),
        "seconds": process.seconds, "cpu": process.cpu, "peak": process.peak,
    }  # fmt: skip
    return Found(**(asdict(found) | figures))


def by_anon(table: Path, rows: int, k: int, runs: int, domain: Domain, folder: Path) -> Found:
    config = {
        "source": {"path": str(table)},
        "columns": {
            "individual": "row", "quasi_identifiers": {name: {} for name in NAMES}, "sensitive": [SENSITIVE],
        },
        "privacy": [{"k_anonymity": {"k": k}}],
        "release": {"path": "release"},
        "limits": {"memory": "2GB"},
    }  # fmt: skip
    (folder / "config.yaml").write_text(json.dumps(config))
    command = [ANON, "run", str(folder / "config.yaml"), "--overwrite", "--force"]
    try:
        process = measure.best(runs, partial(measure.finished, command), ENOUGH)
    except Failed as failed:
        return Found("anon", rows, k, f"failed: {str(failed).splitlines()[-1]}")
    import duckdb

    names = ", ".join(NAMES)
    release = str(folder / "release" / "release.parquet")
    groups = duckdb.execute(f"SELECT {names}, count(*) FROM read_parquet(?) GROUP BY ALL", [release]).fetchall()
    return judged(Found("anon", rows, k), process, domain, ((tuple(labels), size) for *labels, size in groups))


def installed(name: str) -> str:
    """Makes the environment of a peer unless it is there; why it cannot be, if so."""
    home, packages = HOME / name, PEERS[name][0]
    ready = home / "ready"
    if ready.exists() and ready.read_text() == "\n".join(packages):
        return ""
    print(f"... installing {name}", file=sys.stderr, flush=True)
    venv.create(home, with_pip=True, clear=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return f"cannot be installed: {said[-1] if said else 'pip gave no reason'}"
    ready.write_text("\n".join(packages))
    return ""


def by_peer(name: str, table: Path, rows: int, k: int, patience: float, domain: Domain, folder: Path) -> Found:
    if missing := installed(name):
        return Found(name, rows, k, missing)
    out, script = folder / "groups.csv", SCRIPTS / f"{name.replace('-', '_')}_peer.py"
    process = measure.watch([HOME / name / "bin" / "python", script, table, k, out], patience)
    if process is None:
        return Found(name, rows, k, f"over {patience:g} s")
    if process.code:
        return Found(name, rows, k, f"failed: {(process.err.splitlines() or ['exit ' + str(process.code)])[-1]}")
    with out.open(newline="") as file:
        groups = [(tuple(labels), int(size)) for *labels, size in list(csv.reader(file))[1:]]
    return judged(Found(name, rows, k), process, domain, groups)


def table_of(copies: int) -> tuple[Path, int, Domain]:
    """The Adult table so many times over, its rows and its values."""
    import pyarrow.compute as pc

    whole = adult.load(adult.fetch())
    path = DATA / f"adult-{copies}.parquet"
    if not path.exists():
        adult.write(adult.copies(whole, copies), path, False)
    ages = pc.min_max(whole["age"]).as_py()
    values = {name: len(whole[name].unique()) for name in CATEGORIES}
    return path, copies * whole.num_rows, Domain(ages["min"], ages["max"], values)


def row(found: Found) -> tuple[str, ...]:
    what = "partition, all columns cut freely" if found.tool == "anon" else PEERS[found.tool][1]
    head = (f"{found.rows:,}", str(found.k), found.tool, what)
    if found.wrong:
        return (*head, found.wrong, "", "", "", "", "", "", "")
    return (
        *head, f"{found.seconds:.1f}", f"{found.cpu:.1f}", f"{found.peak / 1e6:,.0f}", f"{found.groups:,}",
        f"{found.smallest:,}", f"{found.suppressed / found.rows:.1%}", f"{found.discernibility / 1e6:,.2f}",
        f"{found.ncp:.3f}",
    )  # fmt: skip


def targets(results: list[Found]) -> list[Target]:
    """On the table as it is, against anonypy's figures as once measured; the table has those of today."""
    ours = next((one for one in results if one.tool == "anon" and one.k == K and not one.wrong), None)
    figures = (None,) * 3 if ours is None else (ours.groups, ours.discernibility / 1e6, ours.seconds)
    return [
        Target("groups, against anonypy's 2,526", figures[0], ">=", 2527),
        Target("discernibility in millions, against anonypy's 3.38", figures[1], "<=", 3.38),
        Target("seconds of a whole run, compiled", figures[2], "<=", 2),
    ]


def report(results: list[Found], facts: dict[str, Any], runs: int) -> str:
    head = ("rows", "k", "tool", "what it does", "seconds", "CPU (s)", "peak MB", "groups", "smallest")
    return "\n\n".join([
        measure.described(facts),
        f"Adult, {', '.join(NAMES)}. anon: the best of {runs} runs or more; peers: one run each. anon labels cells of "
        "the domain where the Mondrian peers publish the extremes of each group's members, which have a lower NCP.",
        markdown((*head, "suppressed", "discernibility (millions)", "NCP"), map(row, results)),
        measure.targets_table(targets(results)),
    ]) + "\n"  # fmt: skip


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser.add_argument("--copies", type=numbers, default=[1], help="of the 45,222 rows, e.g. 1,10,100 (default 1)")
    parser.add_argument("--patience", type=float, default=300, help="seconds for a peer (default 300)")
    parser.add_argument("--runs", type=int, default=3, help="of anon; the best counts (default 3)")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    facts, results = measure.machine(), []
    for copies in given.copies:
        try:
            table, rows, domain = table_of(copies)
        except adult.Unavailable as error:
            raise Failed(f"error: {error}") from None
        with tempfile.TemporaryDirectory(dir=DATA) as temp:
            folder = Path(temp)
            results.append(by_anon(table, rows, K * copies, given.runs, domain, folder))
            for name in PEERS:
                print(f"... {name}, {rows:,} rows", file=sys.stderr, flush=True)
                results.append(by_peer(name, table, rows, K * copies, given.patience, domain, folder))
                text = report(results, facts, given.runs)
                measure.keep("peers", text, {"machine": facts, "results": [asdict(one) for one in results]})
    print(text)


if __name__ == "__main__":
    main()
