"""Answers prompts with an ONNX decoder: `transformers` tokenizer and template, ONNX Runtime.

Works with any decoder graph that has `past_key_values.*` inputs: exports of optimum,
onnx-community and the onnxruntime-genai builder.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Chat, Decoding, Execution, GenerationRequest
from fairgate.domain.wording import quoted
from fairgate.onnx.answer_row import AnswerRow, LabelTokens, LabelTrace
from fairgate.onnx.batches import MOST, BatchSize
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.options import NO_OPTIONS, Context, OptionTokens, ScoredForms
from fairgate.onnx.prompts import NO_CHAT, PromptTokenizer
from fairgate.onnx.session import Device
from fairgate.relations.oracles.choice import STOP_RULE

if TYPE_CHECKING:
    from fairgate.onnx.decoder_session import DecoderSession, JointRows
    from fairgate.onnx.prompt_blocks import PromptBatch, Read

_COMPACT_BELOW = 0.75
"""Finished rows leave the batch when at most this share of its rows still runs."""


class OnnxDecoder:
    """A port `Generator` over a local folder with an ONNX decoder and its tokenizer.

    An answer and its margin are the same bytes whatever the batch size, the order, the other
    requests or the number of threads (CPU, float32: tested bit by bit). Generation stops as soon
    as the label is certain, so the label is the one the full answer would have had. Nothing is
    loaded before the first request.
    """

    def __init__(
        self,
        model_dir: Path,
        *,
        decoding: Decoding,
        chat: Chat = NO_CHAT,
        batch_size: int | BatchSize | None = MOST,
        threads: int = 0,
        device: Device = "cpu",
    ) -> None:
        """Read the folder's settings. `batch_size` None: as many prompts as memory holds.

        Raises ModelError where the folder is incomplete.
        """
        self._folder = ModelFolder.find(Path(model_dir))
        self._decoding = decoding
        self._chat = chat
        self._batch = batch_size if isinstance(batch_size, BatchSize) else BatchSize(batch_size)
        self._threads = threads
        self._device: Device = device
        self._label_tokens: dict[tuple[str, ...], LabelTokens] = {}

    @cached_property
    def fingerprint(self) -> str:
        """Identify files, decoding, prompt format, chat, stop rule and device."""
        knobs: list[object] = [self._decoding.max_new_tokens, self._decoding.temperature]
        knobs += [self._decoding.thinking_tokens, self._chat.system, self._chat.arguments]
        if not self._decoding.is_greedy:
            knobs += [self._decoding.top_p, self._decoding.top_k]
        return f"onnx-decoder/8:{self._folder.fingerprint(*knobs, STOP_RULE, self._device)}"

    @property
    def notices(self) -> list[str]:
        """Return notices for users on how it ran; not part of a result."""
        return self._batch.notices

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Execution]]:
        """Yield `(position, answer)` batch by batch, in an order of its own. Raises ModelError."""
        if not requests:
            return
        if any(request.before for request in requests):
            raise ModelError("a model that runs here holds no conversations: name an `endpoint`")
        prompts = self._prompts.encode([request.prompt for request in requests])
        forms = [self._options_of(options) if options.forms else NO_OPTIONS for options in requests]
        contexts = [context.tokens for options in forms for context in options.contexts]
        widest = self._prepare([*prompts, *contexts], self._decoding.max_new_tokens)
        self._check_vocabulary({token for options in forms for token in options.looked_up})
        answer = partial(self._generate, requests, prompts, forms, widest)
        yield from self._batch.halving(len(requests), answer)

    def _generate(
        self,
        requests: Sequence[GenerationRequest],
        prompts: Sequence[list[int]],
        forms: Sequence[OptionTokens],
        widest: int | None,
        remaining: Sequence[int],
    ) -> Iterator[tuple[int, Execution]]:
        """Yield the answers to the `remaining` requests, by their positions among all.

        The contexts of forms are rows beside the answers: a prompt is read once for both.
        """
        rows = [
            AnswerRow(
                position=position,
                prompt=prompts[position],
                prompts=self._prompts,
                decoding=self._decoding,
                stop=requests[position].ends_with,
                rng=np.random.default_rng(requests[position].seed),
                trace=self._trace(requests[position]),
                opening=self._prompts.opening(requests[position].prompt),
                may_think_for=self._thinking_room(len(prompts[position])),
            )
            # Equal prompts, which differ in their seeds, come into one batch and are read once.
            for position in sorted(remaining, key=prompts.__getitem__)
        ]
        scored = ScoredForms(
            {
                position: requests[position].forms
                for position in remaining
                if requests[position].forms
            },
            forms,
        )
        read = [*((row.prompt, len(row.prompt)) for row in rows), *scored.rows]
        batches = (
            ([rows[number] if number < len(rows) else None for number in batch.row_indices], batch)
            for batch in map(
                partial(scored.watching, first=len(rows)),
                self._batches(read, self._decoding.max_new_tokens, widest),
            )
        )
        if self._session.joins:
            answers = self._answer_jointly(batches, rows)
        else:
            answers = (
                batch_answer for batch in batches for batch_answer in self._answer_batch(*batch)
            )
        yield from scored.completed(answers)

    def score_options(self, requests: Sequence[GenerationRequest]) -> list[list[float]]:
        """Return for each request the log-probability (nats) of each of its options' texts.

        The sum over the option's tokens given the prompt, which is comparable between options
        of one request. Prompt and option are split into tokens together; what differs from the
        prompt's own tokens belongs to the option. What options begin with in common is computed
        once. Raises ModelError.
        """
        scored = [self._options_of(request) for request in requests]
        contexts = [context for options in scored for context in options.contexts]
        if contexts:
            widest = self._prepare([context.tokens for context in contexts], 0)
            self._check_vocabulary({token for options in scored for token in options.looked_up})
            score = partial(self._score, contexts, widest)
            scores_by_context = dict(self._batch.halving(len(contexts), score))
            remaining = iter([scores_by_context[number] for number in range(len(contexts))])
        return [options.summed([next(remaining) for _ in options.contexts]) for options in scored]

    def _options_of(self, request: GenerationRequest) -> OptionTokens:
        """Return the tokens of options, or of forms, behind the prompt.

        Raises ModelError where the prompt is thinking.
        """
        if tag := self._prompts.opening(request.prompt):
            raise ModelError(
                f"the prompt of {str(self._folder.path)!r} opens a thinking part ({tag}), so "
                "an option that follows at once is no answer. Switch thinking off in the "
                "generator's `template_arguments`, {enable_thinking: false} for most models, "
                "or use `read: generated`."
            )
        texts = request.options or [text for _, text in request.forms]
        return OptionTokens.of(*self._prompts.encode_with_option(request.prompt, texts))

    def _score(
        self, contexts: Sequence[Context], widest: int | None, remaining: Sequence[int]
    ) -> Iterator[tuple[int, list[dict[int, float]]]]:
        """Yield the log-probabilities behind the `remaining` contexts, by their position."""
        rows = [(contexts[number].tokens, contexts[number].start) for number in remaining]
        for batch in self._batches(rows, 0, widest):
            logits, _ = batch.prefill()
            for own, number in zip(logits, batch.row_indices, strict=False):
                yield remaining[number], contexts[remaining[number]].read(own)

    def _answer_jointly(
        self, batches: Iterator[tuple[list[AnswerRow | None], PromptBatch]], rows: list[AnswerRow]
    ) -> Iterator[tuple[int, Execution]]:
        """Answer the rows of all batches together, at most as many at once as a batch has."""
        from fairgate.onnx.decoder_session import JointRows

        thinking = self._decoding.thinking_tokens if self._prompts.may_think else 0
        follow = self._decoding.max_new_tokens + thinking
        most, longest = min(len(rows), self._batch.rows), max(len(row.prompt) for row in rows)
        cache = JointRows(self._session, follow, most, longest)
        running = list[AnswerRow]()
        for batch, prompts in batches:
            answers = [(number, row) for number, row in enumerate(batch) if row is not None]
            while running and len(running) + len(answers) > self._batch.rows:
                yield from self._step(cache, running)
            logits, own = prompts.prefill()
            if not answers:
                continue
            first = logits[[number for number, _ in answers], 0]
            yield from self._take_each([row for _, row in answers], first)
            going = [(number, row) for number, row in answers if row.stopped is None]
            cache.join(own, [number for number, _ in going])
            running += [row for _, row in going]
        while running:
            yield from self._step(cache, running)

    def _step(self, cache: JointRows, running: list[AnswerRow]) -> Iterator[tuple[int, Execution]]:
        """Let each row choose its next token; those that are complete leave."""
        logits = cache.step([row.last_token for row in running])
        yield from self._take_each(running, logits)
        if ended := [number for number, row in enumerate(running) if row.stopped is not None]:
            running[:] = [running[number] for number in cache.leave(ended)]

    def _take_each(
        self, rows: Sequence[AnswerRow], logits: npt.NDArray[Any]
    ) -> Iterator[tuple[int, Execution]]:
        """Let rows choose their next tokens by logits `[rows, vocabulary]`; yield what is done."""
        likeliest = logits.argmax(axis=1).tolist()
        for row, own, token in zip(rows, logits, likeliest, strict=True):
            self._take(row, own, token)
            if row.stopped is not None:
                yield row.position, row.answer()

    def _answer_batch(
        self, batch: list[AnswerRow | None], prompts: PromptBatch
    ) -> Iterator[tuple[int, Execution]]:
        first, cache = prompts.prefill()
        logits = first[:, 0]
        rows = [*batch, *[batch[0]] * (len(logits) - len(batch))]
        while any(row is not None for row in rows):
            likeliest = logits.argmax(axis=1).tolist()
            for number, row in enumerate(rows):
                if row is not None and row.stopped is None and row not in rows[:number]:
                    self._take(row, logits[number], likeliest[number])
                    if row.stopped is not None:
                        yield row.position, row.answer()
            running = [n for n, row in enumerate(rows) if row is not None and row.stopped is None]
            if not running:
                return
            few = len(running) <= _COMPACT_BELOW * len(rows) and len(rows) > 2
            if few and self._session.selects:
                row_indices = running if len(running) > 1 else running * 2
                cache = self._session.select(cache, row_indices)
                rows = [rows[number] for number in row_indices]
            logits = self._session.step(cache, [row.last_token if row else 0 for row in rows])

    def _take(self, row: AnswerRow, logits: npt.NDArray[Any], likeliest: int) -> None:
        """Let a row choose its next token. Raises ModelError where the logits are not finite.

        `likeliest`: the first token with the greatest logit, or without a number.
        """
        greatest = float(logits[likeliest])
        if not math.isfinite(greatest):
            raise ModelError(
                f"the decoder {str(self._folder.path)!r} returned {greatest!r} among its logits "
                f"after {len(row.prompt) + len(row.tokens)} tokens. Its weights are "
                "damaged or overflow in this precision: export it again, in fp32 if need be."
            )
        row.take(logits, likeliest)

    def _thinking_room(self, prompt: int) -> int:
        """Return how many tokens of thinking fit between a prompt of this length and its answer."""
        if not self._prompts.may_think:
            return 0
        limits = (self._prompts.context_tokens, self._session.reach.furthest(prompt))
        free_tokens = [
            end - prompt - self._decoding.max_new_tokens for end in limits if end is not None
        ]
        return max(0, min([self._decoding.thinking_tokens, *free_tokens]))

    def _batches(
        self, rows: Sequence[Read], new_tokens: int, widest: int | None
    ) -> Iterator[PromptBatch]:
        from fairgate.onnx.prompt_blocks import PromptPieces, whole_prompts

        session = self._session
        most = 1 if session.one_by_one else self._batch.rows
        if session.shares:
            return PromptPieces(session, most).batches(rows)

        def width(length: int) -> int:
            if not session.pads:
                return length
            thinking = self._thinking_room(length) if new_tokens else 0
            return session.reach.width(length, new_tokens + thinking, widest)

        return whole_prompts(session, most, rows, width)

    def _prepare(self, prompts: Sequence[Sequence[int]], new_tokens: int) -> int | None:
        """Load the model and choose how many prompts run together; return the widest there may be.

        That is None where the model's context is unknown. Raises ModelError where prompts are too
        long, or where memory has no room for the model, for which fewer prompts make none.
        """
        widest, lengths = self._check_lengths(prompts, new_tokens), [*map(len, prompts)]
        row_tokens = max(lengths) + (new_tokens + self._thinking_room(max(lengths)))
        self._check_vocabulary({token for prompt in prompts for token in prompt})
        self._batch.fit(self._session.token_bytes * row_tokens, on_cpu=self._device == "cpu")
        self._session.reach.check(lengths, new_tokens, str(self._folder.path))
        return widest

    def _check_lengths(self, prompts: Sequence[Sequence[int]], new_tokens: int) -> int | None:
        """Return the longest prompt for the model's context; None where it is unknown."""
        context = self._prompts.context_tokens
        widest = None if context is None else context - new_tokens
        if widest is not None and widest < 1:
            raise ModelError(
                f"{new_tokens} tokens are kept for the answer, which leaves none to the prompt: "
                f"{str(self._folder.path)!r} has {context} tokens for both. Lower "
                "`max_new_tokens`, or choose a model with a longer context."
            )
        longest = max((len(prompt) for prompt in prompts), default=0)
        if widest is not None and longest > widest:
            many = sum(len(prompt) > widest for prompt in prompts)
            raise ModelError(
                f"{many} of {len(prompts)} prompts are too long for {str(self._folder.path)!r}: "
                f"the longest has {longest} tokens, the limit is {widest} ({context} tokens "
                f"of context, {new_tokens} kept for the answer). Lower `document_characters` or "
                "`top_k` of the retriever, or `max_new_tokens`, or choose a model with a longer "
                "context."
            )
        if any(not prompt for prompt in prompts):
            raise ModelError("a prompt has no tokens at all; expected at least one character.")
        return widest

    def _check_vocabulary(self, tokens: Iterable[int]) -> None:
        """Raise ModelError for a token of which the graph knows nothing."""
        vocabulary = self._session.vocabulary
        beyond = (
            [] if vocabulary is None else sorted(token for token in tokens if token >= vocabulary)
        )
        if beyond:
            text = self._prompts.text_of(beyond[0])
            raise ModelError(
                f"token {beyond[0]}, {quoted(text)}, is not one of the {vocabulary} of "
                f"{str(self._folder.graph)!r}: the tokenizer beside it is another model's, or has "
                "tokens that the model was not trained with. Copy the tokenizer's files from the "
                "original model, or export it again with `fairgate export MODEL`."
            )

    def _trace(self, request: GenerationRequest) -> LabelTrace | None:
        labels = request.labels
        if len(labels) < 2:
            return None
        if labels not in self._label_tokens:
            label_tokens = LabelTokens.of(labels, self._prompts.splits)
            self._check_vocabulary(label_tokens.tracked.tolist())
            self._label_tokens[labels] = label_tokens
        return LabelTrace(self._label_tokens[labels], request.stop)

    @cached_property
    def _prompts(self) -> PromptTokenizer:
        return PromptTokenizer(self._folder, self._chat)

    @cached_property
    def _session(self) -> DecoderSession:
        # Not at the top: a run whose answers are all stored opens no graph.
        from fairgate.onnx.trials import open_decoder

        return open_decoder(self._folder, device=self._device, threads=self._threads)
