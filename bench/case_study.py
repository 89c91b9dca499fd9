"""Section 7.3 of the skyline paper: `python bench/case_study.py`.

A (3, 6)-diverse release of the Adult table, which is the point (4, 0, 0) at 75% for every occupation, looked at for
Exec-managerial at 95%: `anon run configs/adult-skyline.yaml`, then `anon explore` on what it published. Gets the Adult
table by itself. Prints the knowledge skyline with the adversary beyond each point, and keeps it in
bench/results/case_study.md.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))
import lattice
from measure import ANON, ROOT, finished, keep, markdown

VALUE, CONFIDENCE = "Exec-managerial", "0.95"
CONFIG, TABLE = ROOT / "configs" / "adult-skyline.yaml", ROOT / "demo" / "out" / "adult.parquet"


def main() -> None:
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    lattice.adult.write(lattice.adult_people(), TABLE, as_csv=False)
    with TemporaryDirectory() as folder:
        out = Path(folder) / "release"
        made = json.loads(finished([ANON, "run", CONFIG, "--out", out, "--json"]).out)
        asked = ["--value", VALUE, "--confidence", CONFIDENCE]
        found = finished([ANON, "explore", CONFIG, "--on", out / "release.parquet", *asked, "--json"])
    (skyline,) = json.loads(found.out)["skylines"]
    rows = [
        (f"({point['l']}, {point['k']}, {point['m']})", f"{point['breach_beyond']:.4f}", point["witness"]["sentence"])
        for point in skyline["points"]
    ]
    title = f"{VALUE} below {float(CONFIDENCE):.0%}: {made['rows']:,} rows in {made['groups']:,} groups"
    text = f"{title}\n\n{markdown(('(l, k, m)', 'breach one step beyond', 'who succeeds there'), rows)}\n"
    keep("case_study", text, {"groups": made["groups"], "skyline": skyline})
    print(text)


if __name__ == "__main__":
    main()
