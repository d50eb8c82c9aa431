"""Every key of a generator belongs to one factor: another key would be HEAD's on both sides."""

from fairgate.features.blame.sides import _OF_GENERATOR
from fairgate.systems.generator import GeneratorPolicy


def test_every_key_of_a_generator_is_of_one_factor():
    keys = [key for keys in _OF_GENERATOR.values() for key in keys]
    assert sorted(keys) == sorted(GeneratorPolicy.model_fields)
