"""An agent on SmolLM2 for actions.yaml: it refunds what a review complains of, or says thanks.

Each line of its input is a question, each line of its output the calls that it makes for it. The
model decides whether, and how much; it is too small to write the JSON of a call itself.
"""

import json
import re
import sys
import urllib.request

from server import serve

PORT = 8909
_MODEL = serve(PORT)


def said(prompt, tokens):
    """Return what the model answers, greedily."""
    body = {
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
        "max_tokens": tokens,
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310 - this machine
        return json.load(response)["choices"][0]["message"]["content"].lower()


def calls(text):
    """Return the agent's calls."""
    asked = "Is this review negative or positive? Answer with one word."
    label = said(f"Review: {text}\n\n{asked}\n- negative\n- positive", 8)
    if "negative" not in label:
        return [{"name": "thank", "arguments": {}}] if "positive" in label else []
    asked = "How many dollars do we refund, from 5 to 50? Answer with a number."
    number = re.search(r"\d+", said(f"Review: {text}\n\n{asked}", 8))
    if number is None:
        return [{"name": "escalate", "arguments": {}}]
    return [{"name": "refund", "arguments": {"amount": min(50, max(5, int(number[0])))}}]


for line in sys.stdin:
    question = json.loads(line)
    answer = {"id": question["id"], "answer": calls(question["query"])}
    print(json.dumps(answer), flush=True)
