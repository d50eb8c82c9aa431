"""A revision becomes a folder without a checkout; hostile names and links do not reach the disk."""

import hashlib
import os
import subprocess
import zlib

import pytest

from fairgate.domain.errors import DataError, StoreError, UsageError
from fairgate.features.blame.versions import version_of

IDENTITY = {
    "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org", "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.org", "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}  # fmt: skip


class Git:
    def __init__(self, root):
        self.root = root
        root.mkdir()
        self("init", "-q", "-b", "main")

    def __call__(self, *arguments, given=b""):
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, input=given, capture_output=True, check=True,
            env={**os.environ, **IDENTITY},
        )  # fmt: skip
        return done.stdout.decode().strip()

    def write(self, path, content):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(content)

    def commit(self):
        self("add", "-A")
        self("commit", "-qm", "x", "--allow-empty")

    def object(self, kind, content):
        """Write an object as it is: git's own commands refuse the trees that attackers send."""
        raw = f"{kind} {len(content)}".encode() + b"\0" + content
        name = hashlib.sha1(raw).hexdigest()  # noqa: S324 - git's own
        path = self.root / ".git/objects" / name[:2] / name[2:]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(zlib.compress(raw))
        return name

    def tree(self, *entries):
        return self.object(
            "tree",
            b"".join(
                f"{mode} ".encode() + name + b"\0" + bytes.fromhex(sha)
                for mode, name, sha in entries
            ),
        )

    def commit_tree(self, tree):
        return self("commit-tree", tree, "-m", "crafted")


@pytest.fixture
def git(tmp_path):
    return Git(tmp_path / "repository")


def test_the_files_of_a_revision_and_nothing_else_changes(git):
    contents = {
        "a/policy.yaml": b"x: 1\n", "a/b/c.bin": bytes(range(256)), "empty": b"", "top": b"t",
    }  # fmt: skip
    for path, content in contents.items():
        git.write(path, content)
    git.commit()
    git.write("a/policy.yaml", b"edited\n")
    git.write("untracked", b"u")
    before = git("status", "--porcelain"), sorted(os.walk(git.root / "a"))
    with version_of("HEAD", git.root, "BASE") as version:
        found = {
            path.relative_to(version.folder).as_posix(): path.read_bytes()
            for path in version.folder.rglob("*")
            if path.is_file()
        }
        folder = version.folder
        assert version.display_path("a/policy.yaml") == "HEAD:a/policy.yaml"
    assert found == contents
    assert not folder.exists()
    assert (git("status", "--porcelain"), sorted(os.walk(git.root / "a"))) == before
    with version_of("main", git.root / "a", "BASE") as version:
        assert (version.folder / "policy.yaml").read_bytes() == b"x: 1\n"
    with version_of(str(git.root), git.root, "HEAD") as version:
        assert (version.folder / "a/policy.yaml").read_bytes() == b"edited\n"


def test_links_are_left_out(git):
    git.write("kept", b"k")
    (git.root / "link").symlink_to("/etc/passwd")
    git.commit()
    with version_of("HEAD", git.root, "BASE") as version:
        assert [path.name for path in version.folder.iterdir()] == ["kept"]


NAMES = [
    b"..", b".git", b".GIT", b".", b"a\\b", b"line\nbreak", b"\xff\xfe", b"esc\x1b[31m",
]  # fmt: skip


def test_hostile_names_are_refused(git, tmp_path):
    blob = git.object("blob", b"evil")
    inner = git.tree(("100644", b"evil", blob))
    trees = [git.tree(("100644", name, blob)) for name in NAMES]
    trees += [git.tree(("40000", name, inner)) for name in NAMES[:2]]
    for tree in (*trees, git.tree(("40000", b"fine", trees[0]))):
        commit = git.commit_tree(tree)
        with pytest.raises(DataError, match="not written out"), version_of(commit, git.root, "B"):
            pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["repository"]


def test_a_link_and_a_folder_of_one_name_do_not_lead_out(git, tmp_path):
    target = git.object("blob", str(tmp_path).encode())
    blob = git.object("blob", b"evil")
    inner = git.tree(("100644", b"evil", blob))
    commit = git.commit_tree(git.tree(("120000", b"a", target), ("40000", b"a", inner)))
    with version_of(commit, git.root, "BASE") as version:
        assert not (version.folder / "a").is_symlink()
    twice = git.commit_tree(git.tree(("100644", b"a", blob), ("40000", b"a", inner)))
    with pytest.raises(StoreError), version_of(twice, git.root, "BASE"):
        pass
    assert not (tmp_path / "evil").exists()


def test_what_is_neither_folder_nor_revision_is_refused(git, tmp_path):
    git.write("file", b"x")
    git.commit()
    for named in ("nothing", "--help", "HEAD:file", "a\nb", ""):
        with pytest.raises(UsageError, match="no folder, and no git revision"):
            version_of(named, git.root, "BASE").__enter__()
    with pytest.raises(UsageError, match="no git revision of a checkout"):
        version_of("HEAD", tmp_path, "BASE").__enter__()
