"""What outlives the process: snapshots of state, transcripts, search, recovery and forgetting."""
