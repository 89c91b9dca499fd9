"""Run the stages of the pipeline that touch rows, on this machine (`local`) or on a cluster (`spark`). `base` is the
interface of a backend; one is imported only when a config asks for it."""

from __future__ import annotations

from importlib import import_module

from anon.backends.base import Backend
from anon.config import Config

BACKENDS = {"local": "anon.backends.local:LocalBackend", "spark": "anon.backends.spark.backend:SparkBackend"}


def backend_for(config: Config) -> type[Backend]:
    """Return the backend that a config asks for."""
    module, name = BACKENDS[config.backend.kind].split(":")
    backend: type[Backend] = getattr(import_module(module), name)
    return backend
