"""Every generator of source cases."""

from __future__ import annotations

from fairgate.domain.catalogue import Catalogue
from fairgate.generation.astraea import Astraea
from fairgate.generation.generator import Generator
from fairgate.generation.genfair import GenFair
from fairgate.generation.template_only import TemplateOnly

GENERATORS: Catalogue[Generator] = Catalogue(
    "generator", (GenFair(), TemplateOnly(), Astraea()), see="fairgate generate --help"
)
