"""The JSON Schema of policies, for editors; `python -m fairgate.policy.json_schema` writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairgate.policy.schema import Policy

SCHEMA_FILE = Path(__file__).parent.parent / "data" / "policy.schema.json"


def policy_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a policy file, made from the pydantic models."""
    schema = Policy.model_json_schema()
    for model in (schema, *schema["$defs"].values()):
        for field in model.get("properties", {}).values():
            field.pop("title", None)  # pydantic's titles only repeat the key
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "FairGate policy",
    }


def schema_text() -> str:
    """Return the schema as the text of the shipped file."""
    return json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
