"""Webhook payloads in the form that GitHub documents, cut to what matters and then some."""

from action.fake_github import REPOSITORY


def repository(full_name=REPOSITORY, **more):
    owner, name = full_name.split("/")
    return {
        "id": 1296269, "name": name, "full_name": full_name, "private": True,
        "owner": {"login": owner, "id": 1, "type": "Organization"},
        "default_branch": "main", "fork": full_name != REPOSITORY, **more,
    }  # fmt: skip


def pull_request(number, head, base, *, repo=REPOSITORY, branch="topic"):
    return {
        "number": number, "state": "open", "title": "`$(touch pwned)` <!-- x --> @everyone",
        "user": {"login": "monalisa", "type": "User"}, "body": "::error::pwned\nhello",
        "head": {"ref": branch, "sha": head, "label": f"{repo.split('/')[0]}:{branch}",
                 "repo": repository(repo)},
        "base": {"ref": "main", "sha": base, "repo": repository()},
        "draft": False, "merged": False, "author_association": "CONTRIBUTOR",
    }  # fmt: skip


def on_pull_request(number, head, base, **more):
    return {
        "action": "synchronize", "number": number,
        "pull_request": pull_request(number, head, base, **more),
        "repository": repository(), "sender": {"login": "monalisa", "type": "User"},
    }  # fmt: skip


def on_merge_group(number, head, base):
    return {
        "action": "checks_requested",
        "merge_group": {
            "head_sha": head, "base_sha": base, "base_ref": "refs/heads/main",
            "head_ref": f"refs/heads/gh-readonly-queue/main/pr-{number}-{base}",
        },
        "repository": repository(), "sender": {"login": "github-merge-queue[bot]"},
    }  # fmt: skip


def on_workflow_run(head, *, pulls=(), repo=REPOSITORY, branch="topic", run=30433642, attempt=1):
    return {
        "action": "completed",
        "workflow_run": {
            "id": run, "run_attempt": attempt, "name": "tests", "head_branch": branch, "head_sha": head,
            "event": "pull_request", "status": "completed", "conclusion": "success",
            "pull_requests": list(pulls), "head_repository": repository(repo),
        },
        "repository": repository(),
    }  # fmt: skip


def on_issue_comment(number):
    issue = {
        "number": number, "title": "x", "user": {"login": "monalisa"},
        "pull_request": {"url": "https://api.invalid/pulls/1"},
    }  # fmt: skip
    return {
        "action": "created", "issue": issue, "repository": repository(),
        "comment": {"id": 1, "body": "Thanks!", "user": {"login": "monalisa"}},
    }  # fmt: skip


def on_push(before, after):
    return {
        "ref": "refs/heads/main", "before": before, "after": after, "repository": repository(),
        "commits": [], "head_commit": {"id": after}, "pusher": {"name": "monalisa"},
    }  # fmt: skip


def listed_pulls(*pulls, repo=1296269):
    """Return pull requests in the short form of workflow runs."""
    return [
        {
            "id": number, "number": number, "url": f"https://api.invalid/pulls/{number}",
            "head": {"ref": "topic", "sha": head, "repo": {"id": 1296269, "name": "shop"}},
            "base": {"ref": "main", "sha": base, "repo": {"id": repo, "name": "shop"}},
        }
        for number, head, base in pulls
    ]  # fmt: skip


def on_dispatch(**client_payload):
    return {
        "action": "gate", "branch": "main", "client_payload": client_payload,
        "repository": repository(), "sender": {"login": "monalisa", "type": "User"},
    }  # fmt: skip
