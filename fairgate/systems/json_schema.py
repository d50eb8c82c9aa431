"""The shipped JSON Schema of policies; `python -m fairgate.systems.json_schema` writes it."""

from __future__ import annotations

from pathlib import Path

from fairgate.policy.assembled import schema_text
from fairgate.systems.catalogue import policy_parts

SCHEMA_FILE = Path(__file__).parent.parent / "data" / "policy.schema.json"

if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(policy_parts()), encoding="utf-8")
