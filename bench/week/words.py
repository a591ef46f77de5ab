"""What people say in the week. Nothing of it is asked of anybody in particular but where a name stands in it."""

from __future__ import annotations

TOPICS = (
    "the wildcard certificate", "the staging database", "the build server", "the mail relay", "the old wiki",
    "the printer in the hall", "my home router", "the backup disk", "the ticket system", "the door badge reader",
    "the video player", "the coffee machine", "the load balancer", "the test runner", "the log collector",
)  # fmt: skip
QUESTIONS = (
    "how do I renew {} before it expires?",
    "what is the best way to back up {}?",
    "where can I find the settings of {}?",
    "why does {} stop after an hour?",
    "which port does {} listen on?",
    "does anybody know how to restart {} without losing anything",
)
ANSWERS = (
    "there is a page about that on the intranet",
    "run the setup once more, then it works",
    "that one needs the admin password, it is in the safe",
    "I had the same, a reboot helped",
)
CHAT = (
    "back from lunch",
    "the meeting went on forever",
    "new plants arrived for the office",
    "I will be late tomorrow",
    "that film was better than I had thought",
    "the train was full again this morning",
    "finally weekend soon",
    "I put the slides into the shared folder",
)
ASIDES = (
    "are you coming along tomorrow?",
    "I sent you the file",
    "that was a good one",
    "yes, at eight",
    "no idea, ask Kim",
)
NUDGES = ("anyone?", "any ideas?", "bump")
SETTLED = ("never mind, found it", "nvm, solved it", "ok figured it out")
ERRORS = (
    "Traceback (most recent call last):\n  File \"/srv/app/main.py\", line 12, in <module>\n    run()\nKeyError: '{}'",
    "error[E0382]: borrow of moved value: `{}`\n --> src/main.rs:14:20",
    "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1 while building {}",
)
ASKED_OF_BOT = ("when does the first train to {} leave?", "what is the weather like in {}?", "how far is it to {}?")
TOWNS = ("Lyon", "Bergen", "Porto", "Graz", "Ghent", "Turku")
FOLLOW_UPS = ("and on Sunday?", "and how long does it take?", "what about the evening?")
VENUES = ("Tokyo Tower", "Ueno Park", "Louvre Museum", "Tower Bridge", "Hyde Park", "Kinkaku-ji", "Museum Island")
CHAIN = "shake shack"  # there are several: the bot asks which
YES, NO = ("yes please", "Yes!", "sure, go ahead"), ("no thanks", "not now", "no")
NOT_HERE = ("not in this channel please", "never here please")
IMPRESSION = "the view was great"
