"""What `fairgate init` is told, and what it reads in the folder, stands in the files that it writes."""

import os
import re
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from fairgate.cli import main

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "review-service"
POLICY = "policies/rag-fairness.yaml"
SYSTEMS = ("demo", "models", "recorded", "http", "command", "python", "endpoint")
TASKS = {
    "sentiment": [], "toxicity": [], "free": [], "options": [], "labels": ["--labels", "yes, no, on"],
}  # fmt: skip


def loaded(path):
    return YAML(typ="safe").load(path.read_text())


def test_a_fastapi_service_is_started_and_asked_as_its_own_policy_does(workspace):
    shutil.copytree(EXAMPLE, workspace.root, dirs_exist_ok=True)
    assert workspace.run("init") == 0
    assert f"fairgate doctor {POLICY}" in workspace.out
    system, own = (
        loaded(workspace.root / path)["system"] for path in (POLICY, "policies/reviews.yaml")
    )
    assert re.sub("8000", "8907", str(system)) == str(own)
    assert workspace.run("check", POLICY) == 0, workspace.err
    assert not (workspace.root / "rag_app.py").exists()
    steps = loaded(workspace.root / ".github/workflows/rag-fairness.yml")["jobs"]["gate"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == [
        "python -m pip install -r requirements.txt"
    ]
    (action,) = [step for step in steps if step.get("id") == "fairgate"]
    assert action["env"] == {"MODEL_URL": "${{ vars.MODEL_URL }}"}


def test_a_package_a_dockerfile_and_a_corpus_are_read(workspace):
    app = workspace.root / "src" / "shop" / "main.py"
    app.parent.mkdir(parents=True)
    (app.parent / "__init__.py").touch()
    app.write_text(
        "from fastapi import FastAPI\nfrom pydantic import BaseModel\n\n\nclass Asked(BaseModel):\n"
        "    text: str\n\n\nclass Told(BaseModel):\n    score: float\n    reply: str\n\n\n"
        "app = FastAPI()\n\n\n@app.post('/v1/chat')\ndef chat(asked: Asked) -> Told: ...\n"
    )
    (workspace.root / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (workspace.root / "Dockerfile").write_text("FROM python:3.13-slim\nEXPOSE 8123\nCMD x\n")
    (workspace.root / "data").mkdir()
    (workspace.root / "data" / "notes.csv").write_text("id,text\n1,One.\n2,Two.\n3,C\n4,D\n")
    assert workspace.run("init") == 0
    system = loaded(workspace.root / POLICY)["system"]
    assert system["http"] == {
        "url": "http://127.0.0.1:8123/v1/chat", "request": {"text": "{{query}}"},
        "response": {"answer": "$.reply"},
    }  # fmt: skip
    assert system["serve"]["command"][2:6] == ["uvicorn", "shop.main:app", "--app-dir", "src"]
    assert system["serve"]["ready_url"] == "http://127.0.0.1:8123/v1/chat"
    steps = loaded(workspace.root / ".github/workflows/rag-fairness.yml")["jobs"]["gate"]["steps"]
    assert steps[1]["with"]["python-version"] == "3.13"
    assert steps[2]["run"] == "python -m pip install ."
    assert workspace.run("check", POLICY) == 0, workspace.err
    assert workspace.run("init", "--name", "own", "--system", "endpoint") == 0
    own = loaded(workspace.root / "policies" / "own.yaml")
    assert own["system"]["retriever"]["corpus"] == "data/notes.csv"


REPLIES = {
    'return {"reply": text, "sources": [{"title": "a"}]}': ("$.reply", "$.sources[*]"),
    'if x:\n        return {"error": "no"}\n    return {"message": t, "citations": found}': (
        "$.message", "$.citations[*]",
    ),
    'return {"response": text}': ("$.response", None),
    "return build(x)": ("$.put-yours-here", None),
    'return {"odd key": 1, "reply": text}': ("$.put-yours-here", None),
}  # fmt: skip


def test_the_reply_of_a_handler_is_read(tmp_path, monkeypatch):
    wrong = []
    for number, (body, expected) in enumerate(REPLIES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        (folder / "main.py").write_text(
            "from fastapi import FastAPI\nfrom pydantic import BaseModel\n\napp = FastAPI()\n\n\n"
            "class Asked(BaseModel):\n    text: str\n\n\n"
            f"@app.post('/chat')\ndef chat(asked: Asked):\n    {body}\n"
        )
        assert main(["init", "--task", "free"]) == 0
        policy = loaded(folder / POLICY)
        response = policy["system"]["http"]["response"]
        places = tuple(response.get(part) for part in ("answer", "documents"))
        if places != expected:
            wrong.append((body, places))
    assert not wrong


APPS = {
    "a variable with a default is no route": (
        """import os
from fastapi import FastAPI
from pydantic import BaseModel
model = os.environ.get("MODEL", "small")
app = FastAPI()
class Asked(BaseModel):
    user_id: str = ""
    question: str
    history: list[str] = []
@app.post("/ask")
async def ask(asked: Asked): return {"answer": model}
""",
        ("/ask", {"question": "{{query}}"}, "$.answer", "/ask"),
    ),
    "the likeliest of several routes, and a health page": (
        """from fastapi import FastAPI
from pydantic import BaseModel, Field
class Asked(BaseModel):
    text: str = Field(..., alias="message")
class Told(BaseModel):
    reply: str
    sources: list[str]
def create_app() -> FastAPI:
    app = FastAPI()
    @app.post("/feedback")
    def feedback(asked: Asked): ...
    @app.post("/v1/chat", response_model=Told)
    def chat(asked: Asked): return build(asked)
    @app.get("/items/{id}")
    def item(id): ...
    @app.get("/healthz")
    def health(): ...
    return app
""",
        ("/v1/chat", {"message": "{{query}}"}, "$.reply", "/healthz"),
    ),
    "a chat takes messages": (
        """from fastapi import FastAPI, Request
app = FastAPI()
@app.post("/v1/chat/completions")
async def complete(request: Request):
    body = await request.json()
    return {"text": body["messages"]}
""",
        ("/v1/chat/completions", {"messages": "{{messages}}"}, "$.text", "/v1/chat/completions"),
    ),
    "what is no literal is not read": (
        """from flask import Flask, request
PATH = "/chat"
app = Flask(__name__)
@app.route(PATH, methods=["POST"])
def chat(): return {"reply": request.json["q"]}
""",
        ("/put-yours-here", {"put-yours-here": "{{query}}"}, "$.put-yours-here", "/"),
    ),
}


@pytest.mark.parametrize("name", APPS)
def test_routes_are_those_of_decorators_and_the_rest_is_told(workspace, name):
    text, expected = APPS[name]
    (workspace.root / "main.py").write_text(text)
    assert workspace.run("init", "--task", "free") == 0, workspace.err
    system = loaded(workspace.root / POLICY)["system"]
    http, base = system["http"], "http://127.0.0.1:8000"
    places = (
        http["url"],
        http["request"],
        http["response"]["answer"],
        system["serve"]["ready_url"],
    )
    assert places == (base + expected[0], *expected[1:3], base + expected[3])
    assert ("main.py has no POST route" in workspace.out) == ("PATH" in text)
    assert workspace.run("check", POLICY) == (2 if "PATH" in text else 0), workspace.err


def test_questions_that_no_run_can_read_are_refused_before_anything_is_written(workspace):
    for name, text, code in (("q.txt", "Who?\n", 2), ("q.csv", "", 4)):
        (workspace.root / name).write_text(text)
        assert workspace.run("init", "--questions", name) == code, workspace.out
        assert name in workspace.err
        assert not (workspace.root / POLICY).exists()


def test_a_flask_app_is_started_and_asked(tmp_path, monkeypatch):
    bodies = {
        "text = request.get_json()['q']\n    return jsonify({'reply': text})": ("q", "$.reply"),
        "data = request.json\n    return jsonify(answer=data.get('message', ''))": (
            "message", "$.answer",
        ),
        "return {'text': f(request.json['query'])}, 200": ("query", "$.text"),
    }  # fmt: skip
    wrong = []
    for number, (body, expected) in enumerate(bodies.items()):
        folder = tmp_path / str(number)
        (folder / "src").mkdir(parents=True)
        monkeypatch.chdir(folder)
        (folder / "src" / "server.py").write_text(
            "import os\nfrom flask import Flask, jsonify, request\n\napp = Flask(__name__)\n"
            "key = os.environ['BOT_KEY']\n\n\n"
            f"@app.route('/chat', methods=['POST'])\ndef chat():\n    {body}\n"
        )
        assert main(["init", "--task", "free"]) == 0
        system = loaded(folder / POLICY)["system"]
        (field,) = system["http"]["request"]
        places = (field, system["http"]["response"]["answer"])
        is_served = system["serve"] == {
            "command": [
                "python", "-m", "flask", "--app", "src/server:app", "run", "--port", "8000",
            ],
            "ready_url": "http://127.0.0.1:8000/chat", "env": ["BOT_KEY"],
        }  # fmt: skip
        if places != expected or not is_served or not system["http"]["url"].endswith(":8000/chat"):
            wrong.append((body, system))
    assert not wrong


def test_variables_that_a_program_is_not_given_are_named(workspace):
    (workspace.root / "main.py").write_text(
        "import os\nfrom fastapi import FastAPI\nkey = os.getenv('API_KEY')\n"
        "model = os.environ.get('MODEL', 'small')\nport = os.environ['PORT']\napp = FastAPI()\n"
    )
    assert workspace.run("init", "--task", "free") == 0
    assert "main.py reads API_KEY: name those that it needs in `serve.env`" in workspace.out
    assert loaded(workspace.root / POLICY)["system"]["serve"]["env"] == ["PORT"]


@pytest.mark.walk(12)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("system", [name for name in SYSTEMS if name != "models"])
def test_every_task_of_every_system_is_a_valid_policy(workspace, task, system):
    refused = system == "demo" and task in ("free", "labels")  # which that model does not answer
    command = ["init", "--task", task, *TASKS[task], "--system", system]
    assert workspace.run(*command) == 2 * refused
    if refused:
        return
    policy = workspace.root / POLICY
    policy.write_text(policy.read_text().replace("model: put-yours-here", "model: mine"))
    assert workspace.run("check", POLICY) == 0, workspace.err
    lines = (workspace.root / POLICY).read_text().splitlines()
    told = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    assert len(told) <= 15, "a starter is read in one look"


def test_own_questions_terms_and_labels(workspace):
    (workspace.root / "q.csv").write_text("nr,question\n1,Is it open?\n2,Who is there?\n3,Why?\n")
    command = ["init", "--system", "recorded", "--questions", "q.csv"]
    given = ["--task", "labels", "--labels", "yes, no", "--terms", "age, A nurse, A rich man"]
    assert workspace.run(*command, *given) == 0
    (suite,) = loaded(workspace.root / POLICY)["suites"]
    assert suite["task"]["labels"] == ["yes", "no"]
    assert suite["perturbations"] == ["age", "policies/terms.yaml"]
    assert workspace.run("plan", POLICY) == 0, workspace.err
    assert '"query": "A nurse says the following text: \\"Who is there?\\"' in workspace.out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--task", "labels"], "--task labels needs --labels"),
        (["--labels", "a, b"], "no other task takes them"),
        *(
            (["--task", "labels", "--labels", labels], "expected two or more different labels")
            for labels in ("yes", "yes;no", "yes, YES", "yes,,no", " , ")
        ),
        (["--questions", "none.csv"], "none.csv"),
        (["--task", "praise"], "'praise' is not one of"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_written(workspace, given, said):
    assert workspace.run("init", *given) == 2
    assert said in workspace.err
    assert not (workspace.root / "policies").exists()


ODD = (
    "q}\n  serve: {command: [touch, pwn]}\n  #", 'q": "x", "z', "a: b # c", "{{query}}", "null", "[x", "\x1b[31m",
)  # fmt: skip
PLACES = {
    "an alias": "question: str = Field(..., alias={0!r})", "an alias of documents": "question: str\n"
    "    documents: list[str] = Field(..., alias={0!r})",
}  # fmt: skip
ODD_APP = """\
import os
from fastapi import FastAPI
from pydantic import BaseModel, Field
app = FastAPI()
KEY = os.environ[{key!r}]
class Asked(BaseModel):
    {asked}
@app.post({route!r})
def ask(asked: Asked):
    return {{{reply!r}: "x"}}
"""


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    "place", [*PLACES, "a variable", "a route", "a reply", "a corpus", "a file"]
)
def test_no_name_of_a_service_writes_into_its_policy(workspace, place, tmp_path):
    """Whoever wrote the service, or only a name in it, says no more than that name."""
    wrong = []
    for number, odd in enumerate(ODD):
        root = tmp_path / str(number)
        root.mkdir()
        fields = {"key": "KEY", "asked": "question: str", "route": "/ask", "reply": "answer"}
        if place in PLACES:
            fields["asked"] = PLACES[place].format(odd)
        elif place in ("a variable", "a route", "a reply"):
            fields[{"a variable": "key", "a route": "route", "a reply": "reply"}[place]] = odd
        name = odd.replace("/", "") or "x"
        (root / (f"{name}.py" if place == "a file" else "app.py")).write_text(
            ODD_APP.format(**fields)
        )
        if place == "a corpus":
            (root / "data").mkdir()
            (root / "data" / f"{name}.csv").write_text("id,text\n1,One.\n2,Two.\n3,C\n4,D\n")
        os.chdir(root)
        code = workspace.run("init", "--system", "http")
        try:
            system = loaded(root / POLICY)["system"]
            serve = system["serve"]["command"]
            fine = {*system} <= {"http", "serve"} and serve[0] == "python" and "touch" not in serve
            is_open = "put-yours-here" in (root / POLICY).read_text()
            fine &= workspace.run("check", POLICY) == (2 if is_open else 0)
        except Exception as error:  # noqa: BLE001
            fine = f"{type(error).__name__}"
        if fine is not True or code or "\x1b" in workspace.out + workspace.err:
            wrong.append((odd, code, fine, workspace.err[:200]))
    assert wrong == []


_APP = "from fastapi import FastAPI\nfrom pydantic import BaseModel\napp = FastAPI()\n"
_ASKED = "class Asked(BaseModel):\n    question: str\n"
OPEN = {
    "no route": (_APP, "url"),
    "no field of the question": (
        f"{_APP}@app.post('/ask')\ndef ask(asked): return {{'answer': 'x'}}\n", "request",
    ),
    "no field of the answer": (
        f"{_APP}{_ASKED}@app.post('/ask')\ndef ask(asked: Asked): return build(asked)\n", "response",
    ),
    "another field that is needed": (
        f"{_APP}{_ASKED}    tenant: int\n@app.post('/ask')\ndef ask(asked: Asked): return {{'answer': 'x'}}\n",
        "request",
    ),
    "a model of an endpoint": ("", "endpoint"),
}  # fmt: skip


@pytest.mark.parametrize("opening", OPEN)
def test_a_policy_is_not_valid_while_a_value_is_open(workspace, opening):
    app, key = OPEN[opening]
    (workspace.root / "main.py").write_text(app)
    system = "http" if app else "endpoint"
    assert workspace.run("init", "--task", "free", "--system", system) == 0
    first = f"Next: put yours where {POLICY} says `put-yours-here`\n      fairgate check {POLICY}\n"
    assert first in workspace.out
    path = workspace.root / POLICY
    lines = path.read_text().splitlines()
    (line,) = [n for n, text in enumerate(lines, 1) if text.strip().startswith(f"{key}:")]
    for command in ("check", "run"):
        assert workspace.run(command, POLICY) == 2
        (problem,) = [each for each in workspace.err.splitlines() if f"{POLICY}:{line}:" in each]
        assert re.search("found '.*put-yours-here', .* expected .*: write it", problem)
    path.write_text(path.read_text().replace("put-yours-here", "mine"))
    assert workspace.run("check", POLICY) == 0, workspace.err


@pytest.mark.parametrize("system", ["http", "command", "python"])
def test_an_example_that_is_written_is_called_one(workspace, system):
    assert workspace.run("init", "--system", system) == 0
    assert "rag_app.py is a small example that answers" in workspace.out
    assert "put-yours-here" not in workspace.out + (workspace.root / POLICY).read_text()
    assert workspace.run("init", "--system", system) == 0
    assert "is a small example" not in workspace.out
