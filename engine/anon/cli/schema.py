"""`anon schema`: print the JSON Schema of the config."""

from __future__ import annotations

from anon.cli.command import NO_PROGRESS, NO_WARNINGS, CommonFlags, command
from anon.core.terminal import say_json


@command(
    "Example: `anon schema > anon.schema.json`",
    as_json="No effect: the schema is one JSON object in any case.",
    show_values="No effect: this command reads no data.",
    strict=NO_WARNINGS,
    log_json=NO_PROGRESS,
)
def schema(flags: CommonFlags) -> int:
    """Print the JSON Schema of the config, for editors."""
    from anon.config import json_schema

    say_json(json_schema(), indent=2)
    return 0
