"""GitHub as FairGate sees it: the event that started a run, files of a commit, one comment."""
