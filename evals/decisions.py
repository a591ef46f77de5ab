"""`python -m evals.decisions EXAMPLES.jsonl > PREDICTIONS.jsonl`: the decider's decision on each example.

One JSON object a line: id, respond, and the score: how sure the model is, before any rule, that it was said to the bot;
1 for an explicit trigger. (What it answers goes by more than that: whether an answer is wanted.)
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson

from decider import Reason, ResponseDecider, TrainedFollowup
from evals.examples import BOT, Example, ExampleError, conversation_of, message_of, read_examples
from followup.model import Eagerness, FollowupModel, ModelFileError, load_model


async def predict_one(example: Example, decider: ResponseDecider, model: FollowupModel) -> bytes:
    """The line on one example: the decision as the running bot would take it."""
    conversation, message = conversation_of(example), message_of(example)
    conversation.add(message)
    decision = await decider.should_respond(message, conversation, BOT)
    is_explicit = decision.reason is Reason.EXPLICIT_TRIGGER
    score = decision.score if is_explicit else model.estimate(message, conversation, BOT).said
    return orjson.dumps({"id": example.id, "respond": decision.respond, "score": score}) + b"\n"


def predict(examples: Iterable[Example], eagerness: Eagerness) -> Iterator[bytes]:
    """The lines of predictions. Raises ModelFileError."""
    model = load_model()
    decider = ResponseDecider(followup=TrainedFollowup(model, eagerness))
    with asyncio.Runner() as runner:
        for example in examples:
            yield runner.run(predict_one(example, decider, model))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evals.decisions", description=__doc__)
    parser.add_argument("examples", type=Path, help="examples, one JSON object a line; .gz or not")
    parser.add_argument("--eagerness", type=Eagerness, choices=list(Eagerness), default=Eagerness.BALANCED)
    arguments = parser.parse_args()
    try:
        for line in predict(read_examples(arguments.examples), arguments.eagerness):
            sys.stdout.buffer.write(line)
    except (ExampleError, ModelFileError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
