"""The schema that editors use is the one the parser enforces."""

from pathlib import Path

import jsonschema
import pytest
from fakes.policies import parse_policy
from fakes.policies import schema as policy_schema

from fairgate.policy.assembled import schema_text
from fairgate.policy.yaml_text import load_yaml
from fairgate.systems.catalogue import SCHEMA_FILE, policy_parts

ROOT = Path(__file__).parents[3]
POLICIES = sorted((ROOT / "policies").glob("*.yaml"))
VALIDATOR = jsonschema.Draft202012Validator(policy_schema())


def test_the_shipped_file_is_current_and_a_valid_schema():
    message = "run `python -m fairgate.systems.catalogue`"
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(policy_parts()), message
    jsonschema.Draft202012Validator.check_schema(policy_schema())


@pytest.mark.parametrize("file", POLICIES, ids=lambda file: file.stem)
def test_shipped_policies_are_valid_fit_and_name_the_schema_for_editors(file):
    text = file.read_text(encoding="utf-8")
    assert parse_policy(text, file.name).policy.name == file.stem
    errors = VALIDATOR.iter_errors(load_yaml(text, file.name).data)
    assert [error.message for error in errors] == []
    first = text.splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (file.parent / first.split("=", 1)[1]).resolve() == SCHEMA_FILE.resolve()


def test_it_refuses_what_the_parser_refuses():
    document = load_yaml(POLICIES[-1].read_text(encoding="utf-8"), "p.yaml")
    assert isinstance(document.data, dict)
    for change in ({"nam": 1}, {"suites": []}, {"version": 2}, {"min_decided": 3}, {"system": "x"}):
        assert not VALIDATOR.is_valid(document.data | change), change


def test_every_key_is_described():
    schema = policy_schema()
    models = {"Policy": schema} | schema["$defs"]
    silent = [
        f"{name}.{key}"
        for name, model in models.items()
        for key, field in model.get("properties", {}).items()
        if "description" not in field and "$ref" not in field
    ]
    assert silent == []
