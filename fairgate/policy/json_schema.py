"""The JSON Schema of policies, for editors."""

from __future__ import annotations

import json
from typing import Any

from fairgate.policy.assembled import PolicyParts, policy_model


def policy_schema(parts: PolicyParts) -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a policy file, made from the pydantic models."""
    schema = policy_model(parts).model_json_schema()
    for model in (schema, *schema["$defs"].values()):
        for field in model.get("properties", {}).values():
            field.pop("title", None)  # pydantic's titles only repeat the key
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "FairGate policy",
    }


def schema_text(parts: PolicyParts) -> str:
    """Return the schema as the text of the shipped file."""
    return json.dumps(policy_schema(parts), indent=2, ensure_ascii=False) + "\n"
