"""`python bot.py doctor`: checks the bot and its surroundings, and says how to mend what is wrong.

Each check is a function in `checks_*.py` that returns findings and can be called by itself. Those that cost no request
are also run at the bot's start.
"""
