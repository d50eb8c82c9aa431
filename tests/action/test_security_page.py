"""Each sentence of SECURITY.md that says what FairGate does has tests that hold it to that."""

import ast
import re
from pathlib import Path

import pytest
from action import payloads
from action.repositories import worse
from action.shown_workflows import shown_workflows
from ruamel.yaml import YAML

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / ".github" / "SECURITY.md").read_text(encoding="utf-8")
HERE = "action/test_security_page.py"
PROVEN_BY = {
    "a workflow command, mention, link": "golden/test_hostile_texts.py:test_payload_never_acts "
    "action/test_what_is_posted.py:test_nothing_acts_in_what_is_posted",
    "it approves itself by editing": "action/test_self_approval.py:"
    "test_a_change_of_the_workflow_allows_nothing action/test_base_anywhere.py:"
    "test_every_change_ends_as_on_a_pull_request_with_the_same_comment",
    "a file of the checkout takes part": "action/test_action.py:"
    "test_nothing_in_the_checkout_takes_part action/test_code_of_a_change.py:"
    "test_no_module_takes_the_place_of_any_that_is_imported",
    "code that is run ends the gate green": "action/test_code_of_a_change.py:"
    "test_no_code_that_is_run_ends_the_gate_green action/test_code_of_a_change.py:"
    "test_a_verdict_stays_what_it_was_whatever_is_left_for_the_end",
    "a file that it commits is written through": "action/test_places_of_results.py:"
    "test_no_folder_is_written_or_emptied_that_a_commit_brings "
    "action/test_base_anywhere.py:"
    "test_nothing_is_written_through_a_link_or_believed_that_a_change_brings",
    "a path leaves the workspace": "action/test_written_paths.py:test_no_committed_link_leads_out "
    "unit/io/test_links_out.py:test_in_every_folder_that_a_policy_names",
    "it hides the base's policy": "action/test_hidden_base.py:"
    "test_a_change_that_would_bring_such_a_link_is_refused "
    "action/test_hidden_base.py:test_nor_one_that_is_a_submodule",
    "git runs a program or reads": "action/test_git_calls.py:"
    "test_no_setting_of_the_checkout_names_a_program "
    "action/test_git_calls.py:test_an_embedded_bare_repository_is_not_asked",
    "stored answers, indexes or models": "action/test_believed_folders.py:"
    "test_a_committed_store_is_refused_and_so_is_any_other_part_of_a_cache "
    "action/test_believed_folders.py:test_stored_answers_inside_the_checkout_are_refused "
    "action/test_base_answers.py:test_nothing_else_is_believed_and_nothing_of_it_is_fetched",
    "the verdict on one commit is shown": "action/test_events.py:"
    "test_the_verdict_on_one_pull_request_does_not_stand_at_the_head_of_another "
    "action/test_hidden_base.py:test_a_merge_of_the_author_s_own_gets_no_verdict",
    "sources, terms, tasks, items": "action/test_changed_data.py:"
    "test_a_change_of_what_is_asked_is_shown "
    "action/test_changed_data.py:test_another_measuring_model_is_seen",
    "identities are called neutral": "unit/policy/test_control_phrases.py:"
    "test_no_identity_attribute_or_name_that_is_shipped_may_be_called_control "
    "unit/policy/test_control_phrases.py:test_nor_in_letters_that_look_like_it "
    "action/test_own_control_phrases.py:test_an_introduction_lists_each_of_them",
    "its files run in a job whose token": "action/test_events.py:"
    "test_a_fork_s_number_meets_no_writing_token "
    "action/test_workflows.py:test_no_job_that_runs_files_of_a_pull_request_may_write",
    "its own texts appear": "action/test_fork_comments.py:"
    "test_a_forks_praise_of_itself_is_not_repeated",
    "code runs": "action/test_introduced_gates.py:"
    "test_an_introduced_gate_of_a_served_system_is_neutral_whatever_is_set "
    "unit/policy/test_perturbation_files.py:test_all_faults_of_a_file_are_told_at_their_places",
    "a secret is read, or sent": "action/test_proposed_policies.py:"
    "test_what_any_kind_of_system_would_send_is_not_sent "
    "action/test_proposed_policies.py:test_a_known_address_gets_no_other_secret",
    "a secret travels over": "unit/retrieval/test_endpoint_secrets.py:"
    "test_no_key_goes_over_an_open_line_and_no_proxy_makes_it_a_safe_one "
    "unit/retrieval/test_endpoint_secrets.py:test_what_stays_on_this_machine_meets_no_proxy",
    "an endpoint's reply puts its key": "unit/retrieval/test_endpoint_secrets.py:"
    "test_a_key_that_comes_back_is_in_no_text",
    "a pipe or device": "faults/test_links_to_themselves.py:test_it_is_an_error_in_words "
    "unit/io/test_regular.py:test_no_other_code_opens_what_is_read",
    "more than 2,000,000 cases": "action/test_proposed_policies.py:"
    f"test_an_introduction_of_too_many_cases_is_refused_before_it_is_planned {HERE}:"
    "test_so_many_cases_are_planned_at_most",
    "more than 100,000 cases": "action/test_size_of_a_proposal.py:"
    "test_a_proposal_beyond_all_proportion_is_refused_before_it_is_planned "
    "action/test_size_of_a_proposal.py:test_nor_under_a_path_that_the_base_does_not_have",
    "a process that it leaves behind": "contract/test_left_behind.py:"
    "test_nothing_that_a_program_leaves_outlives_the_run",
    "a copied marker makes": "action/test_comments.py:test_a_copied_marker_is_not_ours",
    "something other than what the lock's": "action/test_action_environment.py:"
    "test_a_package_in_the_cache_counts_only_by_the_lock_s_hash",
    "it reads the gate's variables": "contract/test_closed_environment.py:"
    "test_no_process_above_a_program_shows_the_token",
    "it finds the token of GitLab": "action/test_gitlab_notes.py:"
    "test_a_program_under_test_finds_the_token_nowhere_above_it",
    "gate (`org/fairgate`": f"{HERE}:test_jobs_have_the_rights_that_the_page_says "
    f"{HERE}:test_the_gate_writes_nothing",
    "comment (`org/fairgate/comment`": f"{HERE}:test_jobs_have_the_rights_that_the_page_says "
    "action/test_comments.py:test_created_once_then_updated_then_left_alone",
    "accept (`org/fairgate/accept`": f"{HERE}:test_jobs_have_the_rights_that_the_page_says "
    "action/test_workflows.py:test_no_job_that_runs_files_of_a_pull_request_may_write",
    "No job of the gate is given a secret": "action/test_workflows.py:"
    "test_a_gate_s_job_gets_no_secret_and_its_comment_comes_from_its_artifact",
    "Under every event whose token": "action/test_events.py:"
    "test_a_fork_s_number_meets_no_writing_token",
    "Whatever the event, the base's": "action/test_events.py:"
    "test_whatever_event_carries_a_commit_the_base_decides_or_nothing "
    "action/test_events.py:test_an_event_that_is_not_known_is_refused",
    "A pull request to the default branch": "action/test_events.py:"
    f"test_a_base_branch_without_the_policy_is_no_introduction {HERE}:"
    "test_an_introduced_policy_of_recorded_answers_is_judged",
    "A policy that starts a program": "action/test_introduced_gates.py:"
    "test_an_introduced_gate_of_a_served_system_is_neutral_whatever_is_set "
    "action/test_proposed_policies.py:test_an_introduced_policy_asks_nobody",
    "A proposed policy that asks": "action/test_proposed_policies.py:"
    "test_a_proposed_endpoint_is_not_asked action/test_proposed_policies.py:"
    "test_what_the_base_asks_is_asked_and_another_key_is_not_sent",
}


def statements():
    """Yield what the page says that FairGate does: cells of tables, and items of the list."""
    defends, rest = PAGE.split("## Who may write what")
    rights, running = rest.split("## Running on pull requests")
    for row in re.findall(r"^\| .+", defends, re.MULTILINE)[1:]:
        yield from row.split(" | ", 1)[1].rstrip(" |").split("; ")
    yield from (row[2:] for row in re.findall(r"^\| .+", rights, re.MULTILINE)[1:])
    yield rights.strip().rpartition("\n")[2]
    claims = running.partition("Please set it up so:")[0]
    yield from (" ".join(item.split()) for item in claims.split("\n- ")[1:])


def test_no_statement_of_the_page_is_without_a_test():
    said = list(statements())
    of_none = [text for text in said if not any(text.startswith(start) for start in PROVEN_BY)]
    unsaid = [start for start in PROVEN_BY if not any(text.startswith(start) for text in said)]
    assert (of_none, unsaid) == ([], [])


def test_what_holds_the_page_to_its_word_is_there():
    missing = []
    for name in {name for names in PROVEN_BY.values() for name in names.split()}:
        file, test = name.split(":")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if test not in functions:
            missing.append(name)
    assert missing == []


RIGHTS = {
    "fairgate": {"contents": "read"}, "fairgate/merge": {"contents": "read"},
    "fairgate/comment": {"actions": "read", "pull-requests": "write"},
    "fairgate/accept": {"actions": "read", "contents": "write", "pull-requests": "write"},
}  # fmt: skip


def test_jobs_have_the_rights_that_the_page_says():
    """Those of every workflow that users are shown, and the page's own words."""
    seen = set()
    for name, text in shown_workflows():
        workflow = YAML(typ="safe").load(text)
        for job in workflow["jobs"].values():
            ours = [
                found[1] for step in job.get("steps", [])
                if (found := re.match(r"org/(fairgate(?:/\w+)?)@", step.get("uses", "")))
            ]  # fmt: skip
            rights = job.get("permissions")
            if not ours or rights is None:  # of a part of a job, shown without its rights
                continue
            (action,) = ours
            seen.add(action)
            more = {"actions": "read"} if action == "fairgate" else {}
            assert rights in (RIGHTS[action], {**RIGHTS[action], **more}), (name, action)
    assert seen == set(RIGHTS)
    for action, rights in RIGHTS.items():
        (row,) = [line for line in PAGE.splitlines() if f"`org/{action}`" in line]
        assert set(re.findall(r"`([\w-]+: \w+)`", row)) - {"actions: read"} == {
            f"{name}: {right}" for name, right in rights.items()
        } - {"actions: read"}


@pytest.mark.parametrize("inputs", [{}, {"FAIRGATE_COMMENT": "always"}])
def test_the_gate_writes_nothing(history, job, inputs):
    base = history.git("rev-parse", "main")
    history.proposes(worse)
    event = payloads.on_pull_request(7, history.merge(), base)
    job.hub.requests.clear()
    assert job.command("run", "pull_request", event, **inputs) == 1
    asked = [(method, path) for method, path in job.hub.requests if "graphql" not in path]
    assert {method for method, _ in asked} <= {"GET"}


def test_an_introduced_policy_of_recorded_answers_is_judged(history, job):
    history.branch()
    text = history.read("policies/small.yaml").replace("name: small", "name: new")
    history.write("policies/new.yaml", text)
    history.commit()
    assert job.pull(history, FAIRGATE_POLICY="policies/new.yaml") == 0
    assert job.outputs["outcome"] == "pass"
    assert "this change introduces the gate" in job.summary


def test_so_many_cases_are_planned_at_most():
    from fairgate.gate.loaded_policy import MOST_CASES

    assert f"{MOST_CASES:,} cases" in PAGE
