"""Asks the package index for known vulnerabilities of the locked dependencies of an installation. `make audit` and CI
run it: a vulnerability is exit 1; where the index cannot be asked, it says so and claims nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).parent.parent / "requirements" / "runtime.lock"
COMMAND = ("pip_audit", "--requirement", str(LOCK), "--disable-pip", "--format", "json", "--progress-spinner", "off")


def found(answer: str) -> list[str] | None:
    """Return the vulnerabilities in an answer of pip-audit, one line each; None if it is no answer about packages.

    >>> found('{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "X-1"}]}]}')
    ['a 1: X-1']
    >>> found('{"dependencies": [{"name": "a", "skip_reason": "not found"}]}'), found("")
    (None, None)
    """
    try:
        packages = json.loads(answer)["dependencies"]
    except (ValueError, KeyError):
        return None
    if not packages or any("skip_reason" in package for package in packages):
        return None
    return [f"{each['name']} {each['version']}: {vuln['id']}" for each in packages for vuln in each["vulns"]]


def main() -> int:
    answer = subprocess.run([sys.executable, "-m", *COMMAND], capture_output=True, text=True, timeout=300, check=False)
    vulnerabilities = found(answer.stdout)
    if vulnerabilities is None:
        print("audit: not done, the package index gave no answer about vulnerabilities")
        return 0
    print("\n".join(vulnerabilities) or "audit: no known vulnerabilities in the locked dependencies")
    return int(bool(vulnerabilities))


if __name__ == "__main__":
    sys.exit(main())
