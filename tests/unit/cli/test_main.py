"""What the command line changes in its process, it puts back."""

import gc

from fairgate.cli import main


def test_a_caller_keeps_its_garbage_collection(capsys):
    before = gc.get_threshold()
    assert main(["--version"]) == 0
    assert gc.get_threshold() == before
    assert main(["no-such-command"]) == 2
    assert gc.get_threshold() == before
    capsys.readouterr()
