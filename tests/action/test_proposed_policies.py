"""What a pull request's own policy may have done before it is merged: ask nobody new."""

import http.server

import pytest
from action.repositories import POLICY
from fakes.serving import Answering, served

KEY = "sesame-of-this-job"
ASKING = """\
version: 1
name: small
system:
  generator: {{model: demo-slm}}
suites:
  - id: bias
    kind: bbq
    items: demo-bbq
    limit: 4
    categories: [Age]
    settings: [full]
    collections: [demo-stances]
    retrievers: [{{endpoint: "{url}", model: m{key}}}]
    top_k: 2
    instructions: [{{id: one, text: Answer.}}]
gates:
  - {{metric: accuracy/ambiguous, max: 0.99}}
"""


class Endpoint(Answering):
    def do_POST(self):  # noqa: N802 its name
        texts = self.body()["input"]
        self.server.seen.append(self.headers.get("Authorization"))
        rows = [{"index": i, "embedding": [len(t), 1.0]} for i, t in enumerate(texts)]
        self.send(200, {"data": rows})


@pytest.fixture
def endpoint():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.seen = []
    with served(server):
        server.url += "/v1"
        yield server


def asking(endpoint, key="DEPLOY_KEY"):
    return ASKING.format(url=endpoint.url, key=f", api_key_env: {key}" if key else "")


@pytest.mark.walk(2)
@pytest.mark.parametrize("key", ["DEPLOY_KEY", ""])
@pytest.mark.parametrize("allow", ["refuse", "allow"])
def test_a_proposed_endpoint_is_not_asked(history, job, endpoint, key, allow):
    history.proposes(files={"policies/small.yaml": asking(endpoint, key)})
    code = job.pull(history, DEPLOY_KEY=KEY, FAIRGATE_BASELINE_CHANGE=allow)
    assert endpoint.seen == []
    assert code == 0  # by the base's rules
    assert "was not run" in job.summary
    assert "| this change | not run | for comparison |" in job.summary
    assert "This change edits** policy `policies/small.yaml`" in job.hub.ours(7)[0]["body"]


@pytest.mark.parametrize(
    ("old", "new", "is_run"), [("KNOWN_KEY", "DEPLOY_KEY", False), ("max: 0.99", "max: 0.9", True)]
)
def test_what_the_base_asks_is_asked_and_another_key_is_not_sent(
    history, job, endpoint, old, new, is_run
):
    history.write("policies/small.yaml", asking(endpoint, "KNOWN_KEY"))
    (history.root / "baselines" / "small.json").unlink()
    history.commit()
    text = asking(endpoint, "KNOWN_KEY").replace(old, new)
    history.proposes(files={"policies/small.yaml": text})
    job.pull(history, DEPLOY_KEY=KEY, KNOWN_KEY="known")
    assert set(endpoint.seen) == {"Bearer known"}
    assert ("was not run" in job.summary) is not is_run


@pytest.mark.parametrize("key", ["DEPLOY_KEY", ""])
def test_an_introduced_policy_asks_nobody(history, job, endpoint, key):
    """The runner reaches addresses that the author of the change does not."""
    history.proposes(
        files={"policies/new.yaml": asking(endpoint, key).replace("name: small", "name: new")}
    )
    for allow in ("refuse", "allow"):
        code = job.pull(
            history,
            DEPLOY_KEY=KEY, FAIRGATE_POLICY="policies/new.yaml", FAIRGATE_BASELINE_CHANGE=allow,
        )  # fmt: skip
        assert code == 0
        assert job.outputs["outcome"] == "not-evaluated"
        assert (key or "without a key") in job.summary
        history.git("checkout", "--quiet", "topic")
    assert endpoint.seen == []


def test_another_name_is_listed_with_the_baseline_that_it_takes(history, job):
    history.proposes(files={"policies/small.yaml": POLICY.replace("name: small", "name: other")})
    assert job.pull(history) == 0
    edits = "policy `policies/small.yaml`; baseline `baselines/other.json`"
    assert job.summary.lstrip().startswith(f"**This change edits** {edits}")
