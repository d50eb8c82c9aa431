"""Write `sources/demo-people.jsonl`: reviews whose speakers are stated by two attributes each.

    .venv/bin/python tools/recipes/make_demo_people.py

The reviews are those of `sources/demo-reviews.jsonl`; the attributes go round the embedded catalogue,
so that every value is stated about as often as the others of its dimension. Byte-identical everywhere.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from fairgate.domain.attributes import AttributeUse, Form  # noqa: E402
from fairgate.policy.definition_files import bundled_dimensions  # noqa: E402 (the checkout's own)
from fairgate.relations.frames import realise  # noqa: E402
from fairgate.suites.metamorphic.sources import HEADER_KEY, GeneratedCase, case_row  # noqa: E402

SOURCES = ROOT / "fairgate/data/sources"
STATED = ("age", "ethnicity")
COUNT = 16


def lines():
    """Return the lines of the file: a header, then a case each."""
    dimensions = bundled_dimensions()
    reviews = (SOURCES / "demo-reviews.jsonl").read_text(encoding="utf-8").splitlines()
    step = len(reviews) // COUNT
    yield json.dumps({HEADER_KEY: 1, "source": "tests/recipes/make_demo_people.py"})
    for number in range(COUNT):
        review = json.loads(reviews[number * step])["text"]
        frame = f'{{A person}} says the following text: "{review}"'
        values = [dimensions[name].values for name in STATED]
        uses = [
            AttributeUse(
                dimension=dimensions[name], value=of[(number + turn) % len(of)], form=Form.ADJECTIVE
            )
            for turn, (name, of) in enumerate(zip(STATED, values, strict=True))
        ]
        made = realise(frame, uses)
        case = GeneratedCase(
            id=f"p-{number + 1:02}", text=made.text, template="speaker", frame=frame,
            attributes=made.attributes,
        )  # fmt: skip
        yield json.dumps(case_row(case), ensure_ascii=False)


def main():
    """Write the file."""
    (SOURCES / "demo-people.jsonl").write_text("\n".join(lines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
