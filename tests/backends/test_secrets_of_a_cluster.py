"""Settings of `backend.conf` reach Spark without standing in the command line of any process."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from anon.backends.spark.properties import ARGUMENTS, submitted
from anon.errors import SourceError
from tests.helpers.spark import JAVA, needed

SECRET = "s3cret=a:b\\c #é€😀 end"
SCRIPT = """
import os
from pathlib import Path
from anon.backends.spark.session import session
from anon.config import Spark

def exposed():
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield os.environ["TOKEN"][:6].encode() in file.read_bytes()
        except OSError:
            pass

conf = {"spark.anon.token": os.environ["TOKEN"], "spark.ui.enabled": "false"}
with session(Spark(kind="spark", master="local[1]", conf=conf)) as spark:
    assert spark.conf.get("spark.anon.token") == os.environ["TOKEN"]
    print("exposed:", any(exposed()))
"""


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_secret_in_a_setting_stands_in_no_command_line(tmp_path: Path) -> None:
    needed()
    environment = os.environ | {"TOKEN": SECRET, "TMPDIR": str(tmp_path), "JAVA_TOOL_OPTIONS": JAVA}
    ran = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert "exposed: False" in ran.stdout, ran.stderr
    assert not list(tmp_path.glob(".anon-*"))


def test_the_file_of_settings_is_private_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARGUMENTS, "--verbose pyspark-shell")
    with submitted({"spark.a": "x y"}):
        arguments = shlex.split(os.environ[ARGUMENTS])
        file = Path(arguments[arguments.index("--properties-file") + 1])
        assert file.read_text() == "spark.a=x\\ y\n"
        assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
        assert arguments[-2:] == ["--verbose", "pyspark-shell"]
    assert not file.parent.exists() and os.environ[ARGUMENTS] == "--verbose pyspark-shell"


def test_another_file_of_settings_is_refused_instead_of_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARGUMENTS, "--properties-file mine.conf pyspark-shell")
    with pytest.raises(SourceError, match=r"put its settings into backend\.conf"), submitted({}):
        pass
