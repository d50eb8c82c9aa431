"""One comment, whatever happens: races, deletions, forgeries, outages, limits of GitHub."""

import threading

import pytest
from action.fake_github import BOT, READ_ONLY, REPOSITORY, TOKEN
from action.repositories import worse

from fairgate.domain.errors import ApiError
from fairgate.github.api import GitHubApi
from fairgate.github.pull_requests import Marker, StickyComment


@pytest.fixture
def waits():
    """Return the waits between attempts, none of which is waited."""
    return []


@pytest.fixture
def api(hub, waits):
    """Return a client that may write."""
    return GitHubApi(hub.url, TOKEN, sleep=waits.append)


def sticky(hub, api, number=7):
    return StickyComment(api, repository=REPOSITORY, number=number, graphql=f"{hub.url}/graphql")


def marker(run=500, key="small", attempt=1):
    return Marker(key=key, head="a" * 40, run=(run, attempt))


def test_created_once_then_updated_then_left_alone(hub, api):
    assert sticky(hub, api).put(marker(), "one", create=True).action == "created"
    assert sticky(hub, api).put(marker(501), "two", create=True).action == "updated"
    assert sticky(hub, api).put(marker(501), "two", create=True).action == "unchanged"
    (comment,) = hub.of(7)
    assert comment["body"].endswith("\ntwo")
    assert len(hub.made("PATCH")) == 1


def test_not_created_where_nobody_wants_it_but_kept_up_to_date(hub, api):
    assert sticky(hub, api).put(marker(), "green", create=False).action == "not wanted"
    assert hub.of(7) == []
    sticky(hub, api).put(marker(), "red", create=True)
    assert sticky(hub, api).put(marker(501), "green", create=False).action == "updated"


def test_found_behind_150_earlier_comments(hub, api):
    for number in range(150):
        hub.comment(7, f"chatter {number}", user={"login": "monalisa"})
    sticky(hub, api).put(marker(), "one", create=True)
    for number in range(150):
        hub.comment(7, f"more {number}", user={"login": "monalisa"})
    assert sticky(hub, api).put(marker(501), "two", create=True).action == "updated"
    assert len(hub.ours(7)) == 1
    assert any("page=2" in path for path in hub.made("GET", "/issues/7/comments"))


def test_policies_have_comments_of_their_own(hub, api):
    sticky(hub, api).put(marker(key="small"), "one", create=True)
    sticky(hub, api).put(marker(key="small-two"), "two", create=True)
    sticky(hub, api).put(marker(501, key="small"), "three", create=True)
    assert sorted(c["body"].splitlines()[1] for c in hub.of(7)) == ["three", "two"]


@pytest.mark.parametrize("user", [{"login": "monalisa"}, {"login": "github-actions"}, None])
def test_a_copied_marker_is_not_ours(hub, api, user):
    forged = hub.comment(7, f"{marker(999_999)}\nforged", user=user or {"login": "x[bot]"})
    assert sticky(hub, api).put(marker(), "one", create=True).action == "created"
    assert hub.comments[forged["id"]]["body"].endswith("forged")


def test_a_marker_in_the_middle_of_a_comment_is_not_one(hub, api):
    hub.comment(7, f"quoted:\n{marker()}")
    assert sticky(hub, api).put(marker(), "one", create=True).action == "created"


@pytest.mark.parametrize(("run", "attempt"), [(600, 1), (500, 2)])
def test_a_newer_run_wins(hub, api, run, attempt):
    sticky(hub, api).put(marker(run, attempt=attempt), "newer", create=True)
    found = sticky(hub, api).put(marker(500), "older", create=True)
    assert found.action == "newer run has reported"
    assert hub.of(7)[0]["body"].endswith("newer")


def test_duplicates_of_earlier_days_are_removed(hub, api):
    first = hub.comment(7, f"{marker(1)}\na")
    hub.comment(7, f"{marker(2)}\nb")
    hub.comment(7, f"{marker(3)}\nc")
    sticky(hub, api).put(marker(500), "one", create=True)
    assert [c["id"] for c in hub.of(7)] == [first["id"]]
    assert hub.of(7)[0]["body"].endswith("one")


def test_deleted_in_between_is_created_again(hub, api):
    old = sticky(hub, api).put(marker(), "one", create=True)

    def delete(method, path, body):
        if method == "PATCH":
            hub.comments.clear()

    hub.hooks.append(delete)
    found = sticky(hub, api).put(marker(501), "two", create=True)
    assert found.action == "created"
    assert found.url != old.url
    assert len(hub.of(7)) == 1


@pytest.mark.parametrize("order", [(500, 501), (501, 500)])
def test_two_runs_that_create_at_the_same_time_leave_one_comment_of_the_newer(hub, api, order):
    mine, other = order

    def intrude(method, path, body):
        if method == "POST" and "comments" in path:
            hub.hooks.clear()
            hub.comment(7, f"{marker(other)}\nrun {other}")

    hub.hooks.append(intrude)
    sticky(hub, api).put(marker(mine), f"run {mine}", create=True)
    # The other run looks again after creating, as ours did.
    sticky(hub, api).put(marker(other), f"run {other}", create=True)
    (comment,) = hub.of(7)
    assert comment["body"].endswith("run 501")


def test_many_runs_at_once_leave_one_comment(hub):
    def post(run):
        client = GitHubApi(hub.url, TOKEN, sleep=lambda _: None)
        sticky(hub, client).put(marker(run), f"run {run}", create=True)

    threads = [threading.Thread(target=post, args=(500 + n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sticky(hub, GitHubApi(hub.url, TOKEN)).put(marker(507), "run 507", create=True)
    (comment,) = hub.of(7)
    assert comment["body"].endswith("run 507")


def test_a_bad_gateway_that_created_all_the_same_leaves_one(hub, api):
    hub.fail("POST", "/comments", 502, after=True)
    assert sticky(hub, api).put(marker(), "one", create=True).url
    assert len(hub.of(7)) == 1


def test_a_bad_gateway_that_did_nothing_is_tried_again(hub, api):
    hub.fail("POST", "/comments", 502)
    sticky(hub, api).put(marker(), "one", create=True)
    assert len(hub.of(7)) == 1


def test_retry_after_is_honoured(hub, api, waits):
    hub.fail("POST", "/comments", 429, headers={"Retry-After": "7"})
    hub.fail("GET", "/comments", 403, headers={"Retry-After": "3"})
    hub.fail("GET", "/comments", 503)
    sticky(hub, api).put(marker(), "one", create=True)
    assert waits[0] == 3.0
    assert 7.0 in waits
    assert len(hub.of(7)) == 1


def test_a_wait_of_an_hour_is_not_waited(hub, api, waits):
    hub.fail("GET", "/comments", 429, headers={"Retry-After": "3600"})
    with pytest.raises(ApiError, match="429"):
        sticky(hub, api).put(marker(), "one", create=True)
    assert waits == []


def test_a_read_only_token_is_refused_once(hub, waits):
    client = GitHubApi(hub.url, READ_ONLY, sleep=waits.append)
    with pytest.raises(ApiError, match="Resource not accessible") as caught:
        sticky(hub, client).put(marker(), "one", create=True)
    assert caught.value.status == 403
    assert len(hub.made("POST", "comments")) == 1


def test_a_comment_that_is_too_long_is_github_s_error(hub, api):
    with pytest.raises(ApiError, match="65536"):
        sticky(hub, api).put(marker(), "x" * 70_000, create=True)


def test_an_outage_ends_after_a_few_attempts(hub, api, waits):
    hub.fail("GET", "/comments", 500, times=50)
    with pytest.raises(ApiError, match="500"):
        sticky(hub, api).put(marker(), "one", create=True)
    assert len(waits) == 3


def test_a_server_that_is_not_there(waits):
    client = GitHubApi("http://127.0.0.1:9", TOKEN, sleep=waits.append)
    with pytest.raises(ApiError) as caught:
        client.get("/x")
    assert TOKEN not in str(caught.value) + repr(client)


def test_a_redirect_does_not_carry_the_token(hub, api):
    hub.fail("GET", "/pulls/7", 302, headers={"Location": "http://127.0.0.1:9/steal"})
    with pytest.raises(ApiError, match="302"):
        api.get(f"/repos/{REPOSITORY}/pulls/7")


def test_a_next_page_on_another_host_is_refused(hub, api):
    link = '<http://127.0.0.1:9/steal>; rel="next"'
    hub.fail("GET", "/comments", 200, headers={"Link": link}, message=[])
    with pytest.raises(ApiError, match="another host"):
        list(api.pages(f"/repos/{REPOSITORY}/issues/7/comments"))


@pytest.mark.parametrize("root", ["http://api.example.org", "ftp://x", "file:///etc", "nonsense"])
def test_a_token_travels_encrypted_only(root):
    with pytest.raises(ApiError, match="no address"):
        GitHubApi(root, TOKEN)


@pytest.mark.parametrize("key", ['x" head="', "a --> b", "<b>", "ä/ö", "a--b"])
def test_no_name_breaks_out_of_the_marker(hub, api, key):
    text = str(marker(key=key))
    assert text.count("-->") == 1
    assert text.endswith("-->")
    assert "--" not in text[4:-3].replace('key="', "")
    sticky(hub, api).put(marker(key=key), "one", create=True)
    sticky(hub, api).put(marker(501, key=key), "two", create=True)
    assert len(hub.of(7)) == 1


@pytest.mark.parametrize("answer", [[], [7], ["id"], [{}], [{"id": None}], [{"id": "9"}]])
def test_an_answer_of_another_shape_is_github_s_error(hub, api, answer):
    """A list of comments in which ours has no number, and a created comment without one."""
    hub.fail("POST", "/comments", 201, message=answer)
    with pytest.raises(ApiError, match="without its number"):
        sticky(hub, api).put(marker(), "one", create=True)
    ours = [{**row, "body": str(marker()), "user": BOT} for row in answer if isinstance(row, dict)]
    hub.fail("GET", "/comments", 200, message=ours)
    if ours:
        with pytest.raises(ApiError, match="without its number"):
            sticky(hub, api).put(marker(), "one", create=True)


def test_a_marker_of_absurd_numbers_is_an_old_one(hub, api):
    hub.comment(7, f'<!-- fairgate:report:v1 key="small" head="" run="{"9" * 9000}.1" -->\nx')
    assert sticky(hub, api).put(marker(), "one", create=True).action == "updated"


@pytest.mark.parametrize("place", ["http://[::1", "{url}/ä?page=2", "{url}/x\x7fy"])
def test_a_next_page_that_is_no_address_is_github_s_error(hub, api, place):
    link = f'<{place.replace("{url}", hub.url)}>; rel="next"'
    hub.fail("GET", "/comments", 200, headers={"Link": link}, message=[])
    with pytest.raises(ApiError):
        list(api.pages(f"/repos/{REPOSITORY}/issues/7/comments"))


@pytest.mark.parametrize("answer", [[], [None], ["garbage"], [[]]])
def test_such_an_answer_changes_no_verdict(job, history, capsys, answer):
    history.branch()
    history.answers(worse, capsys)
    history.commit()
    job.hub.fail("POST", "/issues/7/comments", 201, message=answer)
    assert job.pull(history) == 1
    assert "the verdict stands" in job.summary
    assert job.outputs["outcome"] == "fail"
