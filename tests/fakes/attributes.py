"""Short ways to state attributes of the embedded catalogue."""

from fairgate.domain.attributes import AttributeUse, Form, Manner
from fairgate.policy.definition_files import bundled_dimensions


def use(stated, form="adjective", manner="plain"):
    """Return the attribute that `ethnicity/hispanic` names, in a form and a manner."""
    name, value = stated.split("/")
    dimension = bundled_dimensions()[name]
    found = dimension.value(value)
    assert found is not None, stated
    return AttributeUse(dimension=dimension, value=found, form=Form(form), manner=Manner(manner))


def uses(*entries):
    """Return attributes of entries such as `ethnicity/hispanic adjective negated`."""
    return tuple(use(*entry.split()) for entry in entries)
