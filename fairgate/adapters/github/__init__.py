"""The parts of GitHub that FairGate uses: a run's event, files of a commit, one comment."""
