"""The main job on a Spark cluster of two worker processes against the local engine, and what the driver can decide:

    python bench/spark.py [--rows 1000000 10000000] [--simulate 1000000]

Every run is a whole process (`anon run` on the hospital example: read, search, write, verify). Jobs and shuffled bytes
come from Spark's own event log. The simulation decides one level of very many nodes from made-up histograms, as the
driver does at the scale of a real cluster. Keeps the results in bench/results/spark.json and spark.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from measure import ANON, RESULTS, ROOT, finished

MASTER = "local-cluster[2,1,1024]"
PATIENT = {"spark.worker.timeout": "900", "spark.network.timeout": "900s", "spark.ui.enabled": "false"}
STAGES = ("source", "cube", "search", "release", "verify")


def config_of(table: Path, folder: Path, events: Path | None) -> Path:
    """The hospital example on a table, locally or on the cluster with its event log in a folder."""
    text = (ROOT / "configs/hospital.yaml").read_text().replace("../demo/out/extract.parquet", str(table))
    text = text.replace("../hierarchies", str(ROOT / "hierarchies"))
    if events is not None:
        log = {"enabled": "true", "compress": "false", "dir": f"file://{events}"}
        conf = PATIENT | {f"spark.eventLog.{name}": value for name, value in log.items()}
        text += f"\nbackend: {json.dumps({'kind': 'spark', 'master': MASTER, 'conf': conf})}\n"
    path = folder / "config.yaml"
    path.write_text(text)
    return path


def jobs_of(events: Path) -> dict[str, dict[str, int]]:
    """Per kind of work its jobs, the bytes it shuffled, those that went to the driver, and the time of its tasks, as an
    event log has them."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: {"jobs": 0, "shuffled": 0, "driver": 0, "task_ms": 0})
    of_stage: dict[int, str] = {}
    for file in sorted(path for path in events.rglob("*") if path.is_file()):
        for line in file.read_text().splitlines():
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("Event") == "SparkListenerJobStart":
                what = event["Properties"].get("spark.job.description", "other").removeprefix("anon: ")
                found[what]["jobs"] += 1
                of_stage |= {stage: of_stage.get(stage, what) for stage in event["Stage IDs"]}
            if event.get("Event") == "SparkListenerTaskEnd":
                metrics, own = event.get("Task Metrics", {}), found[of_stage.get(event["Stage ID"], "other")]
                own["shuffled"] += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
                own["driver"] += metrics.get("Result Size", 0)
                own["task_ms"] += metrics.get("Executor Run Time", 0)
    return dict(found)


def compare(rows: int, folder: Path) -> dict[str, Any]:
    table, events = folder / "extract.parquet", folder / "events"
    events.mkdir(exist_ok=True)
    subprocess.run([sys.executable, ROOT / "demo/hospital.py", "--rows", str(rows), "--out", table], check=True)
    result: dict[str, Any] = {"rows": rows}
    for kind, log in (("local", None), ("spark", events)):
        config, out = config_of(table, folder, log), folder / kind
        process = finished([ANON, "run", config, "--out", out, "--overwrite", "--log-json"])
        report = json.loads((folder / f"{kind}-run/report.json").read_text())
        told = [json.loads(line) for line in process.err.splitlines() if line.startswith("{")]
        result["groups"] = report["summary"]["groups"]
        result[f"{kind}_levels"] = 1 + max((event.get("level", -1) for event in told), default=-1)
        result[kind] = {"seconds": process.seconds, "peak": process.peak, "stages": report["seconds"]}
    same = [(folder / f"{kind}-run/recoding.json").read_bytes() for kind in ("local", "spark")]
    result |= {"same": same[0] == same[1], "recoding_bytes": len(same[0]), "jobs": jobs_of(events)}
    return result


def simulate(count: int) -> list[dict[str, Any]]:
    """Decides a level of many nodes, each time in a process of its own: by criteria that judge groups alone, and of a
    32nd of them by one that judges all of them together."""
    script = Path(__file__).with_name("decisions.py")
    found = []
    for nodes, judged in ((count, "alone"), (count // 32, "together")):
        ran = subprocess.run([sys.executable, script, str(nodes), judged], check=True, capture_output=True, text=True)
        found.append(json.loads(ran.stdout))
    return found


def markdown(results: dict[str, Any]) -> str:
    lines = [f"| rows | groups | local | {MASTER} | {' | '.join(STAGES)} |", "|---" * (4 + len(STAGES)) + "|"]
    for r in results["runs"]:
        stages = " | ".join(f"{r['local']['stages'][s]:.1f} / {r['spark']['stages'][s]:.1f} s" for s in STAGES)
        local, spark = r["local"]["seconds"], r["spark"]["seconds"]
        lines.append(f"| {r['rows']:,} | {r['groups']:,} | {local:.1f} s | {spark:.1f} s | {stages} |")
    for r in results["runs"]:
        same = "same" if r["same"] else "ANOTHER"
        lines += ["", f"{r['rows']:,} rows, {r['spark_levels']} levels at the top, the {same} recoding.json:", ""]
        lines += ["| work | jobs | shuffled MB | MB to the driver | task seconds |", "|---|---|---|---|---|"]
        for what, own in r["jobs"].items():
            moved = f"{own['shuffled'] / 1e6:.2f} | {own['driver'] / 1e6:.2f}"
            lines.append(f"| {what} | {own['jobs']} | {moved} | {own['task_ms'] / 1e3:.1f} |")
    for r in results.get("decisions", []):
        kind = "together (a skyline with m > 0)" if r["together"] else "alone (entropy l-diversity)"
        lines += ["", f"{r['nodes']:,} nodes judged {kind}: {r['seconds']:.1f} s of one core, peak "
                  f"{r['peak'] / 1e9:.2f} GB, {r['split']:,} split, {r['passes']} passes over the records"]  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--simulate", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args()
    results: dict[str, Any] = {"runs": []}
    if given.simulate:
        results["decisions"] = simulate(given.simulate)
    for rows in given.rows:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            results["runs"].append(compare(rows, Path(folder)))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "spark.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "spark.md").write_text(markdown(results))
    print(markdown(results))


if __name__ == "__main__":
    main()
