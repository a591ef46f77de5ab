"""What outlives the process: the state of channels, the questions in the making, the transcripts."""
