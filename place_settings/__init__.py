"""The settings of places: what a server, a category, a channel or a thread has chosen, and what holds where."""
