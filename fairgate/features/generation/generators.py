"""Every generator of source cases."""

from __future__ import annotations

from fairgate.domain.catalogue import Catalogue
from fairgate.features.generation.astraea import Astraea
from fairgate.features.generation.generator import Generator
from fairgate.features.generation.genfair import GenFair
from fairgate.features.generation.template_only import TemplateOnly

GENERATORS: Catalogue[Generator] = Catalogue(
    "generator", (GenFair(), TemplateOnly(), Astraea()), see="fairgate generate --help"
)
