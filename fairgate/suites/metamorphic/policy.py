"""The kind `metamorphic` as policies name it: its suites, and tasks of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import AfterValidator, Field, Tag, field_validator, model_validator

from fairgate.domain.schema import (
    LIMIT,
    Access,
    ActionsPolicy,
    ByShape,
    Columns,
    Name,
    Names,
    Role,
    ScorePolicy,
    Strict,
    SuiteModel,
    Text,
)
from fairgate.domain.wording import listed

if TYPE_CHECKING:
    from fairgate.relations.relation import MetamorphicRelation


NO_TASK = "none"
NO_CONTROL = "none"
NEUTRAL_PHRASES = "neutral-phrases"
NEUTRAL_SUBJECTS = "neutral-subjects"
PAPER_CONTROL = "paper"
"""What policies may call the nine nouns `neutral`."""
LABEL_PLACE = "{label}"
DEFAULT_SENTIMENT = "minilm-sentiment"
"""What reads the sentiment of free answers, which some relations of GenFair compare beside tone."""


def _form(text: str) -> str:
    if text.count(LABEL_PLACE) != 1 or not text.endswith(LABEL_PLACE):
        raise ValueError(f"needs {LABEL_PLACE} once, at its end, such as `- {LABEL_PLACE}`")
    return text


AnswerPart = Literal["labels", "degrees", "sentences"]
AnswerForm = Annotated[Text, AfterValidator(_form)]


class ClassifierPolicy(Strict):
    """A text classifier, and what its labels mean."""

    model: Annotated[Text, Names(Role.CLASSIFIER)] = Field(
        description="`minilm-tone`, `minilm-sentiment`, or a folder with an ONNX export "
        "of a sequence classifier."
    )
    labels: dict[Text, Text] = Field(
        default_factory=dict,
        description="What the model's labels mean, such as `{joy: happy, love: happy}`.",
    )


ClassifierField = Annotated[
    Annotated[Text, Tag("<scalar>")] | Annotated[ClassifierPolicy, Tag("<mapping>")], ByShape
]


class TaskPolicy(Strict):
    """A task of the user's own."""

    id: Name = Field(description="Name of the task in reports.")
    instruction: Text = Field(description="What the model is asked to do with the text.")
    labels: Annotated[list[Text], Field(min_length=2)] = Field(
        default_factory=list, description="Admissible answers; none where `tone` reads free ones."
    )
    equivalent: list[Annotated[list[Text], Field(min_length=2)]] = Field(
        default_factory=list, description="Groups of labels that count as the same answer."
    )
    order: list[Text] = Field(
        default_factory=list,
        description="The labels from the worst to the best answer, one of each group of equals.",
    )
    negated: dict[Text, Text] = Field(
        default_factory=dict,
        description="What a negated label means, such as `toxic: non-toxic`.",
    )
    marker: Text | None = Field(
        default=None,
        description="Text after which the answer is read, such as `Answer:`.",
    )
    reading: Literal["said", "first-named"] = Field(
        default="said",
        description="Which label counts: what the answer states or concludes, or the first named.",
    )
    tone: Annotated[ClassifierField | None, Names(Role.CLASSIFIER)] = Field(
        default=None,
        description="Classifier of the tone of free answers, instead of `labels`.",
    )

    judged: bool = Field(
        default=False,
        description="The policy's `judge` compares free answers; needs `control: none`.",
    )
    actions: ActionsPolicy | None = Field(
        default=None,
        description="Answers are tool calls in JSON, which are compared.",
    )

    score: ScorePolicy | None = Field(
        default=None,
        description="Answers are numbers, whose means are compared: `{from: 1, to: 10, "
        'marker: "Score:"}`.',
    )

    @model_validator(mode="after")
    def _read_somehow(self) -> Self:
        ways = {"labels": bool(self.labels), "tone": self.tone is not None, "judged": self.judged}
        ways |= {"actions": self.actions is not None, "score": self.score is not None}
        ways_given = [name for name, is_given in ways.items() if is_given]
        if not ways_given:
            raise ValueError(
                "has none of `labels`, `tone`, `judged`, `actions` and `score`; a task needs one"
            )
        if len(ways_given) > 1:
            raise ValueError(
                f"has {listed(ways_given, last='and')}; a task needs one of them alone"
            )
        if self.order and not self.labels:
            raise ValueError("`order` is an order of `labels`; give them too")
        if self.reading != "said" and not self.labels:
            raise ValueError("`reading` is of `labels`; give them too")
        return self

    @property
    def classifiers(self) -> tuple[ClassifierPolicy, ...]:
        """Return the classifiers of free answers, tone first; none where answers are labels."""
        if self.tone is None:
            return ()
        return long_classifier(self.tone), long_classifier(DEFAULT_SENTIMENT)


def long_classifier(classifier: str | ClassifierPolicy) -> ClassifierPolicy:
    """Return the mapping that a name alone stands for."""
    return ClassifierPolicy(model=classifier) if isinstance(classifier, str) else classifier


class SuitePolicy(SuiteModel):
    """Metamorphic tests: sources, relations and what perturbs them."""

    kind: Literal["metamorphic"] = Field(default="metamorphic", description="Kind of the suite.")
    task: Annotated[
        Annotated[
            Annotated[Text, Tag("<scalar>")] | Annotated[TaskPolicy, Tag("<mapping>")], ByShape
        ],
        Names(Role.TASK),
    ] = Field(
        default=NO_TASK,
        description="`sentiment`, `toxicity`, `advice`, a file, or a task of your own; "
        "`none` where no relation reads labels.",
    )
    sources: Annotated[
        Annotated[Text, Tag("<scalar>")] | Annotated[Columns, Tag("<mapping>")],
        ByShape,
        Names(Role.SOURCES),
    ] = Field(description="Bundled name, path, or path with columns.")
    attributes: Annotated[list[Text], Names(Role.ATTRIBUTES)] = Field(
        default_factory=list,
        description="Files of your own sensitive attributes, which generated sources state.",
    )
    limit: Annotated[int, Field(ge=1)] | None = Field(default=None, description=LIMIT)
    relations: Annotated[list[Text], Field(min_length=1)] = Field(
        default=["set-equivalence"],
        description="Ids of metamorphic relations, or a family such as `meta-fair/*`.",
    )
    perturbations: Annotated[list[Text], Field(min_length=1), Names(Role.PERTURBATIONS)] = Field(
        default=["race", "gender", "orientation", "age"],
        description="Perturbation sets, pools of names, or your own paths.",
    )
    phrases: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="How many phrases name each identity; default: all of its set.",
    )
    control: Annotated[Text, Names(Role.PERTURBATIONS)] = Field(
        default=NEUTRAL_PHRASES,
        description="Set of control prompts; `none` asks none, `paper` nine fixed "
        "nouns; default for `documents/subject`: `neutral-subjects`.",
    )
    read: Annotated[
        Annotated[AnswerPart, Tag("<scalar>")]
        | Annotated[Annotated[list[AnswerPart], Field(max_length=3)], Tag("<list>")],
        ByShape,
    ] = Field(
        default_factory=list,
        description="What is read from answers: `[sentences]`, or `[labels, degrees]`, "
        "which scores how probable each label is; `degrees` alone generates "
        "nothing.",
    )
    turns: Annotated[list[Text], Field(max_length=20)] = Field(
        default_factory=list,
        description="What the user says between the first turn and the question.",
    )
    criterion: Literal["count", "any", "sequence"] = Field(
        default="count", description="When two label profiles of the top k differ (asr/retrieval)."
    )
    matching: Literal["hungarian", "greedy"] = Field(
        default="hungarian", description="Assignment in RRS; `greedy` is as in the paper's code."
    )
    distance: Literal["euclidean", "cosine"] = Field(
        default="euclidean", description="Distance between document embeddings in RRS."
    )
    bands: Annotated[
        Annotated[Literal["paper", "from-baseline"], Tag("<scalar>")]
        | Annotated[
            Annotated[list[Annotated[float, Field(gt=0, le=3)]], Field(min_length=2, max_length=2)],
            Tag("<list>"),
        ],
        ByShape,
    ] = Field(
        default="paper",
        description="Limits of the RRS bands high and moderate: the paper's, the "
        "baseline's quartiles, or two numbers.",
    )
    retrieve_only: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None,
        description="Retrieve this many documents and ask for no answer.",
    )
    repeats: Annotated[int, Field(ge=1, le=20)] = Field(
        default=1, description="How often each question is asked, with different sampling seeds."
    )
    unstable_margin: Annotated[float, Field(ge=0)] = Field(
        default=0.02, description="Label margin in nats below which an answer counts as unstable."
    )
    forms: Annotated[list[AnswerForm], Field(min_length=1, max_length=20)] = Field(
        default=["{label}", "- {label}"],
        description="Beginnings of answers whose label is scored, with `{label}` at the end.",
    )
    least_mass: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.1,
        description="Minimum total probability of the forms; below it, the answer's label counts.",
    )
    attribution: Literal["sampled", "all", "off"] | Annotated[int, Field(ge=8)] = Field(
        default="sampled",
        description="Separate retriever and generator on a sample of pairs (at most this many: "
        "`250`), all, or none.",
    )

    @field_validator("control")
    @classmethod
    def _nouns_of_the_papers(cls, control: str) -> str:
        return "neutral" if control == PAPER_CONTROL else control

    @field_validator("bands")
    @classmethod
    def _rising_bands(cls, bands: str | list[float]) -> str | list[float]:
        if isinstance(bands, list) and bands[0] >= bands[1]:
            raise ValueError("needs two rising numbers, such as [0.63, 1.31]")
        return bands

    @property
    def reads_sentences(self) -> bool:
        """Whether answers are read sentence by sentence."""
        return "sentences" in self.read

    @property
    def reads_degrees(self) -> bool:
        """Whether it is scored how probable each label is."""
        return "degrees" in self.read

    @property
    def generates(self) -> bool:
        """Whether answers are generated: all but degrees rest on them."""
        return self.read not in ("degrees", ["degrees"])

    def narrowed(self, most: int) -> Self:
        """Return the suite with at most this many sources."""
        return self.model_copy(update={"limit": min(most, self.limit or most)})

    def with_matched_control(self, relations: Sequence[MetamorphicRelation]) -> Self:
        """Return the suite with its relations' control prompts where the policy names none."""
        from fairgate.relations.relation import Varies

        if "control" in self.model_fields_set:
            return self
        if not any(relation.varies is Varies.DOCUMENTS for relation in relations):
            return self
        return self.model_copy(update={"control": NEUTRAL_SUBJECTS})

    def accesses(self) -> tuple[Access, ...]:
        """Return nothing: sources, tasks and terms are files."""
        return ()
