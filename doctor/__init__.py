"""`python bot.py doctor`: what is wrong with the bot and all around it, and how to mend it; and the cheap part of that
at its start.

Each check is a function in `checks_*.py` that returns findings, and can be called by itself.
"""
