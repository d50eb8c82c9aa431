"""What the Hugging Face hub's client raises, as one of our errors that holds no token.

Which HTTP library the client uses, and so what it raises, differs by its version.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from fairgate.domain.errors import FairGateError
from fairgate.domain.secrets import concealed


@contextlib.contextmanager
def asking_the_hub(failure: Callable[[str], FairGateError]) -> Iterator[None]:
    """Raise `failure` with the message, in one line, for any error in the block.

    A server can put the token that it was sent into its answer. The error itself is not passed on,
    since a traceback would show it.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  # see above
        from huggingface_hub import get_token

        message = concealed(str(error), [get_token() or ""]).strip()
        raise failure(message.splitlines()[0] if message else type(error).__name__) from None
