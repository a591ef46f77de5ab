"""discord_io/made_files.py: what of an answer becomes a file; and how it is posted: once, with the last message."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from discord_io.channel_wire import Posted, PostError, Problem
from discord_io.made_files import MadeFile, with_files
from discord_io.split import MAX_LENGTH, split
from tests.discord_io.posting import CARD, Posting
from tests.support.clock import NOON
from tests.support.fake_wire import FakeWire
from tests.support.virtual_time import until

CODE = "".join(f"print({number})\n" for number in range(250))
BLOCK = f"```python\n{CODE}```\n"
ANSWER = f"Here it is:\n{BLOCK}Run it."
SHOWN = "Here it is:\n📎 `answer.py`\nRun it."
FILE = MadeFile("answer.py", CODE.encode())
ROW = "| " + " | ".join(["a cell of some width"] * 4) + " |\n"
TABLE = ROW + "|---|---|---|---|\n" + ROW * 3


def test_a_code_block_that_no_message_holds_becomes_a_file() -> None:
    assert with_files(ANSWER) == (SHOWN, [FILE])


def test_what_a_message_holds_stays_in_it() -> None:
    for text in ("", "words", "```py\nx = 1\n```", "| a | b |\n|---|---|\n| 1 | 2 |", "x" * 5_000, "a | b\nc | d" * 9):
        assert with_files(text) == (text, [])


@pytest.mark.parametrize("lead", ["1. Do:\n   ", "- ", "2. "])
def test_code_in_a_list_is_indented_in_its_file_as_it_is_by_itself(lead: str) -> None:
    code = "def f():\n    return 1\n" + CODE
    text = f"{lead}```python\n" + "".join(f"   {line}\n" for line in code.splitlines()) + "   ```\nRun it."
    assert with_files(text)[1] == [MadeFile("answer.py", code.encode())]


def test_words_behind_a_block_in_a_list_are_no_code() -> None:
    text = "- ```python\n  x = 1\n  ```\n" + "So it goes on. " * 200
    assert with_files(text) == (text, [])
    assert [part.count("```") for part in split(text)] == [2, 0]


def test_a_table_wider_than_a_window_becomes_a_file() -> None:
    shown, files = with_files(f"So:\n\n{TABLE}\nThat is all.")
    assert shown == "So:\n\n📎 `answer.md`\n\nThat is all."
    assert files == [MadeFile("answer.md", TABLE.encode())]
    assert with_files(f"```\n{TABLE}```\n")[1] == []  # as code it is shown as it is


@pytest.mark.parametrize(
    ("language", "name"), [("js", "answer.js"), ("", "answer.txt"), ("Rust", "answer.rs"), ("../../x", "answer.txt")]
)
def test_a_file_is_named_by_its_language(language: str, name: str) -> None:
    assert [file.name for file in with_files(f"```{language}\n{CODE}```")[1]] == [name]


def test_several_are_told_apart() -> None:
    shown, files = with_files(f"One:\n{BLOCK}Two:\n{BLOCK}")
    assert [file.name for file in files] == ["answer.py", "answer-2.py"]
    assert shown == "One:\n📎 `answer.py`\nTwo:\n📎 `answer-2.py`\n"


def test_as_the_text_grows_what_became_a_file_stays_one() -> None:
    names: set[str] = set()
    for size in range(0, len(ANSWER) + 1, 50):
        shown, files = with_files(ANSWER[:size])
        assert names <= {file.name for file in files}
        names = {file.name for file in files}
        assert all(len(part) <= MAX_LENGTH for part in split(shown))


def test_it_is_stored_with_what_is_still_to_be_posted() -> None:
    form = TypeAdapter(tuple[MadeFile, ...])
    picture = (MadeFile("picture.png", b"\x89PNG\xff\x00"),)
    assert form.validate_json(form.dump_json(picture)) == picture


@pytest.mark.virtual_time
class TestPosting:
    async def test_the_file_comes_with_the_last_message_once_the_answer_is_whole(self) -> None:
        posting = Posting()
        posting.post.show(ANSWER[:-4])
        await until(lambda: posting.wire.standing)
        assert not posting.wire.files
        last = await posting.post.finish(ANSWER, CARD)
        assert posting.wire.texts == [SHOWN]
        assert posting.wire.files == {last: (FILE,)}
        assert posting.post.last_text == SHOWN

    async def test_a_block_that_had_begun_in_messages_leaves_none_behind(self) -> None:
        posting = Posting()
        posting.post.show("Much to say. " * 130 + "\n" + BLOCK[:1_500])
        await until(lambda: len(posting.wire.standing) == 2)
        await posting.post.finish("Much to say. " * 130 + "\n" + BLOCK)
        assert [text.endswith("📎 `answer.py`") for text in posting.wire.texts] == [True]

    async def test_a_part_that_arrived_though_discord_said_no_is_not_posted_twice(self) -> None:
        posting = Posting()
        posting.wire.problems["send"].append(Problem.UNREACHABLE)
        posting.wire.arrives_anyway = True
        last = await posting.post.finish(ANSWER)
        assert (posting.wire.texts, posting.wire.files) == ([SHOWN], {last: (FILE,)})

    @pytest.mark.parametrize("names", [(), ("answer.py",)])
    async def test_after_a_kill_what_stands_gets_its_file_unless_it_has_it(self, names: tuple[str, ...]) -> None:
        wire = FakeWire()
        stood = await wire.send(SHOWN, nonce="500-0", reply_to=500)
        wire.calls.clear()
        posting = Posting(wire, [Posted(stood.message_id, NOON, SHOWN, names)])
        await posting.post.finish(ANSWER)
        assert [call.kind for call in wire.calls] == ([] if names else ["edit"])
        assert wire.files == ({} if names else {stood.message_id: (FILE,)})

    async def test_pictures_that_tools_gave_come_along(self) -> None:
        posting, picture = Posting(), MadeFile("picture.png", b"\x89PNG")
        last = await posting.post.finish("Here.", None, (picture,))
        assert posting.wire.files == {last: (picture,)}

    async def test_where_files_are_not_allowed_the_whole_text_stands_in_messages(self) -> None:
        forbidden = FakeWire()
        forbidden.attaches = False
        refused = FakeWire()
        refused.problems["send"].append(Problem.FORBIDDEN)
        for wire in (forbidden, refused):
            await Posting(wire).post.finish(ANSWER)
            assert "".join(wire.texts).count("print(") == 250
            assert not wire.files

    async def test_where_nothing_is_allowed_that_is_said(self) -> None:
        posting = Posting()
        posting.wire.problems["send"] += [Problem.FORBIDDEN, Problem.FORBIDDEN]
        with pytest.raises(PostError):
            await posting.post.finish(ANSWER)
