"""The kill test: a day of traffic over the loopback Discord, in which the real process is killed again and again."""
