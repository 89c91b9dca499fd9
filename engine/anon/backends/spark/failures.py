"""What can go wrong on a cluster, reported as the failures of anon.errors. What executors say may quote data, so only
our own messages and the kind of a failure come through. (The full text is in the logs of the executors.)"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any

from anon.core.database import FULL
from anon.errors import AnonError, ClusterLost, ConfigError, Problem, ResourceError, SourceError, UnsafeError

MARK = "anon-failure:"
OURS = {kind.__name__: kind for kind in (SourceError, ResourceError, UnsafeError)}
LOGS = "the logs of the executors say more"
GONE = (
    "executors were lost for good; see why in the logs of the cluster before starting again (memory and time limits "
    "are the usual causes)"
)

# what Spark or Java says, and what it means; the first that is found counts
KNOWN: list[tuple[str, type[AnonError], str]] = [
    (
        r"No module named '?anon",
        SourceError,
        "anon is not installed on the executors: install the same version of anon-engine in their Python "
        "(PYSPARK_PYTHON or spark.pyspark.python says which), or send it along with spark.archives",
    ),
    (
        r"No module named '?(\w+)",
        SourceError,
        "a Python package is missing on the executors ({0}): install anon-engine in their Python",
    ),
    (
        r"PYTHON_VERSION_MISMATCH|different version.*than that in driver",
        SourceError,
        "the executors have another Python than the driver: set spark.pyspark.python to the same version",
    ),
    (
        "|".join(FULL),
        ResourceError,
        "no space left on a disk of the executors; make room in their spark.local.dir, or add disks or executors",
    ),
    (
        r"OutOfMemoryError|Python worker exited unexpectedly|MemoryError|OOMKilled|exit code 137|code: 137",
        ResourceError,
        "an executor ran out of memory; raise spark.executor.memory and spark.executor.memoryOverhead",
    ),
    (
        r"PATH_NOT_FOUND|Path does not exist|FileNotFoundException|FAILED_READ_FILE",
        SourceError,
        "a file of the source is not there for the executors; it must lie where driver and executors both find it",
    ),
    (
        r"AccessControlException|Permission ?denied|AccessDenied",
        SourceError,
        "the user that Spark runs as may not read or write a file; give that user the right to",
    ),
    (r"TABLE_OR_VIEW_NOT_FOUND", SourceError, "no such table in the catalog of the session (source.table)"),
    (
        r"Master removed our application|All masters are unresponsive|SparkContext was shut down|"
        r"ExecutorLostFailure|MetadataFetchFailed|FetchFailed|Connection refused|Answer from Java side is empty|"
        r"stopped SparkContext|An error occurred while trying to connect",
        ClusterLost,
        GONE,
    ),
    (
        r"Could not parse Master URL|UnknownHostException|Invalid Spark URL|requested but not .* available",
        SourceError,
        "backend.master is not the URL of a cluster that can be reached, such as spark://host:7077, yarn or local[*]",
    ),
    (
        r"reading the port number from pyspark\.daemon|Cannot run program",
        SourceError,
        "the Python of the executors does not start: PYSPARK_PYTHON or spark.pyspark.python must name one that has "
        "anon-engine and enough memory",
    ),
    (r"UnsupportedClassVersionError", SourceError, "the cluster runs on a Java older than 17, which Spark 4 needs"),
    (r"JAVA_GATEWAY_EXITED|Java gateway process exited", SourceError, "Java ended before Spark had started"),
]  # fmt: skip


@contextmanager
def on_spark(what: str) -> Iterator[None]:
    """Turn failures of Spark into ours, saying what was being done."""
    try:
        yield
    except AnonError:
        raise
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("py4j", "pyspark") and not isinstance(error, ConnectionError):
            raise
        raise _ours(what, error) from None


def _ours(what: str, error: Exception) -> BaseException:
    said = f"{error} {getattr(error, 'java_exception', '')}"
    if MARK in said:
        return _unmarked(json.JSONDecoder().raw_decode(said, said.index(MARK) + len(MARK))[0])
    if "KeyboardInterrupt" in said:
        return KeyboardInterrupt()
    for pattern, kind, words in KNOWN:
        if found := re.search(pattern, said):
            return kind(f"{what}: {words.format(*found.groups())}")
    if _stopped():  # which Spark may call a bug of its own
        return ClusterLost(f"{what}: {GONE}")
    python = re.findall(r"^(?:\w+\.)*(\w+(?:Error|Exception))\b", said, re.MULTILINE)
    return SourceError(f"{what}: Spark failed ({(python or [type(error).__name__])[-1]}); {LOGS}")


def _stopped() -> bool:
    """Return whether the cluster has ended what runs on it."""
    spark = sys.modules.get("pyspark")
    context = spark and spark.SparkContext._active_spark_context
    stopped = True
    with suppress(Exception):  # one that does not answer is gone as well
        stopped = context is not None and bool(context._jsc.sc().isStopped())
    return stopped


def _unmarked(facts: dict[str, Any]) -> AnonError:
    if facts["kind"] == "ConfigError":
        return ConfigError([Problem(**problem) for problem in facts["problems"]])
    return OURS[facts["kind"]](facts["said"])


def marked(error: AnonError) -> RuntimeError:
    """Return one of our failures in a form that reaches the driver from an executor."""
    problems = [vars(problem) for problem in getattr(error, "problems", [])]
    facts = {"kind": type(error).__name__, "said": str(error), "problems": problems}
    return RuntimeError(MARK + json.dumps(facts))


def reporting(work: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """Return work of an executor whose failures of ours reach the driver as such."""

    @wraps(work)
    def wrapped(*arguments: Any) -> Iterator[Any]:
        try:
            yield from work(*arguments)
        except AnonError as error:
            raise marked(error) from None

    return wrapped
