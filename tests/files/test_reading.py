"""files/: each of many samples ends in the right words for the model, or in a picture that it can be shown."""

from __future__ import annotations

import asyncio
import bz2
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from PIL import Image

from files import reading, sandbox
from files.reading import MAX_PICTURES, FileProblem, FileReader, Picture, Reading, Sight
from state.message import AttachedFile, MessageRecord
from tests.support import samples
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, said

GERMAN = "Grüße aus Köln,\nwo es schön ist.\n" * 3
LOG = "".join(f"line {n}\n" for n in range(1, 20_001))
HOST = "https://cdn.discordapp.com/attachments/1"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, nothing is late."""
    monkeypatch.setattr(sandbox, "SECONDS", 600.0)
    monkeypatch.setattr(reading, "READ_SECONDS", 600.0)


class Served:
    """Attachments by their names, as Discord's host gives them out."""

    def __init__(self, **files: bytes) -> None:
        self.files = files
        self.taken = 0

    @asynccontextmanager
    async def open(self, url: str) -> AsyncIterator[AsyncIterator[bytes]]:
        data = self.files.get(url.rpartition("/")[2])
        if data is None:
            raise FileProblem("away")
        yield self._chunks(data)

    async def _chunks(self, data: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(data), 65_536):
            self.taken += 65_536
            yield data[start : start + 65_536]


def attached(name: str, data: bytes = b"", kind: str = "text/plain", seconds: float = 0.0) -> AttachedFile:
    return AttachedFile(name, kind, len(data), f"{HOST}/{name}", seconds)


async def read(data: bytes, kind: str = "text/plain", *, room: int = 60_000, seconds: float = 0.0) -> Reading:
    """What becomes of a file that somebody asks about."""
    file = attached("sample", data, kind, seconds)
    asked = said(ANNA, "what is it?", files=(file,))
    reader = FileReader(Served(sample=data), room)
    return (await reader.read([asked], {asked.message_id}, Sight.BY_BYTES))[file.key]


def long_line() -> bytes:
    return b"x" * (5 * samples.MEGABYTE)


TEXTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "utf-8": (GERMAN.encode, GERMAN),
    "utf-8 with a mark": (lambda: GERMAN.encode("utf-8-sig"), ")\n" + GERMAN),
    "utf-16": (lambda: GERMAN.encode("utf-16"), ")\n" + GERMAN),
    "utf-16, big end first": (lambda: b"\xfe\xff" + GERMAN.encode("utf-16-be"), ")\n" + GERMAN),
    "utf-16 without a mark": (lambda: GERMAN.encode("utf-16-le"), GERMAN),
    "utf-16 without a mark, big end first": (lambda: GERMAN.encode("utf-16-be"), GERMAN),
    "utf-32": (lambda: GERMAN.encode("utf-32"), GERMAN),
    "an old Windows encoding": (lambda: GERMAN.encode("cp1252"), GERMAN),
    "code": (lambda: b"def f(x):\n\treturn x\n", "def f(x):\n\treturn x\n"),
    "colours of a terminal": (lambda: b"\x1b[31mFAILED\x1b[0m test_x\n", "FAILED"),
    "Chinese": (("你好，世界。\n" * 50).encode, "你好，世界。"),
    "an emoji across a border of 1 MB": (lambda: b"x" * (samples.MEGABYTE - 2) + "🦜".encode() * 9, "1,048,576 bytes"),
    "one line of 5 MB": (long_line, "cut behind its first 60,000 characters"),
    "25 MB": (lambda: b"row;row;row\n" * 2_184_533, "only its first 1,048,576 bytes were read"),
    "minified": (lambda: b"!function(){var a=1};" * 45_000, "cut behind its first 60,000 characters, after line 1"),
    "a long log": (LOG.encode, LOG[: LOG.rfind("\n", 0, 60_001)].splitlines()[-1] + "\n(End of the file.)"),
    "a text about PDFs": (lambda: b"A PDF begins with %PDF-1.7.\n", "%PDF-1.7."),
    "a text about ID3": (lambda: b"ID3 grows a tree.\n", "ID3 grows a tree."),
    "a text about bzip2": (lambda: b"BZh is its mark.\n", "BZh is its mark."),
    "a PDF behind other bytes": (lambda: b"\x00\x01\n" + samples.pdf(["the plan"]), "the plan"),
    "a PDF": (lambda: samples.pdf(["the plan"]), "[page 1]\nthe plan"),
    "a PDF with 200 pages": (
        lambda: samples.pdf([f"this is {n}" for n in range(1, 201)]),
        "of its 200 pages these are the first 50; at most 50 are read.)\n[page 1]\nthis is 1\n[page 2]",
    ),
    "a PDF that everybody may open": (lambda: samples.locked(""), "the plan"),
    "a PDF with a script": (lambda: samples.pdf(["the plan"], script="app.alert;"), "[page 1]\nthe plan\n(End"),
    "a PDF with a scanned page": (
        lambda: samples.pdf(["the plan", ""]),
        "pages without any text, as scanned ones are: 1",
    ),
}

SENTENCES: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "it is empty"),
    "white space": (lambda: b" \n\t\r\n", "it is empty"),
    "a zip": (lambda: b"PK\x03\x04" + samples.noise(3_000), "it is an archive"),
    "a gzip": (lambda: b"\x1f\x8b\x08" + samples.noise(3_000), "it is an archive"),
    "a bzip2": (lambda: bz2.compress(b"words"), "it is an archive"),
    "noise": (lambda: samples.noise(3_000), "it is no text"),
    "a program": (lambda: b"\x7fELF\x02\x01\x01" + bytes(5_000), "it is no text"),
    "a text with a zero": (lambda: b"hello\x00world", "it is no text"),
    "a PDF with a password": (lambda: samples.locked("secret"), "it is protected by a password"),
    "a PDF that is cut": (lambda: samples.pdf(["the plan"])[:200], "it is broken"),
    "a PDF of a packing that nobody knows": (
        lambda: samples.pdf(["x"], stream=b"x").replace(b"/FlateDecode", b"/OfMyOwn"),
        "it is broken",
    ),
    "a PDF without pages": (lambda: samples.pdf([]), "it is empty"),
    "a scanned PDF": (lambda: samples.pdf(["", ""]), "its pages are pictures of text"),
    "a PDF whose pages hold themselves": (lambda: samples.pdf(["x"], kids="2 0 R"), "(You cannot read the file"),
    "a PDF that is a bomb": (
        lambda: samples.pdf(["x"], stream=samples.packed_zeroes(200)),
        "(You cannot read the file",
    ),
    "a PDF of 9 MB": (lambda: samples.pdf(["x"]) + bytes(9_000_000), "it is over 8 MB"),
    "a picture that is a bomb": (samples.bomb, "the picture has too many pixels"),
    "a broken picture": (lambda: b"\x89PNG\r\n\x1a\n not a real one", "the picture is broken"),
    "a picture of 9 MB": (lambda: samples.picture("PNG") + bytes(9_000_000), "it is over 8 MB"),
    "a voice message": (lambda: samples.OGG, "you cannot listen"),
    "music": (lambda: b"ID3\x04" + bytes(2_000), "you cannot listen"),
}

PICTURES: dict[str, Callable[[], bytes]] = {
    "PNG": lambda: samples.picture("PNG"),
    "JPEG": lambda: samples.picture("JPEG"),
    "WebP": lambda: samples.picture("WEBP"),
    "GIF, its first frame": samples.two_frames,
}


@pytest.mark.parametrize("name", TEXTS)
async def test_a_text_is_told(name: str) -> None:
    make, words = TEXTS[name]
    for kind in ("text/plain", "image/png"):  # whatever it passes itself off as
        got = await read(make(), kind)
        assert isinstance(got, str)
        assert got.find(words) >= 0  # which pytest does not compare for a minute where it fails
        assert len(got) < 60_500


@pytest.mark.parametrize("name", SENTENCES)
async def test_what_cannot_be_read_is_said(name: str) -> None:
    make, why = SENTENCES[name]
    got = await read(make())
    assert isinstance(got, str)
    assert why in got
    assert got.startswith('(You cannot read the file "sample": ')
    assert got.endswith("Say so; do not guess what it holds.)")


@pytest.mark.parametrize("name", PICTURES)
async def test_a_picture_is_shown(name: str) -> None:
    got = await read(PICTURES[name](), "text/plain")
    assert isinstance(got, Picture)
    shown = Image.open(io.BytesIO(got.data)).convert("RGB")
    assert (shown.size, got.kind) == ((60, 40), "image/jpeg")
    red, green, blue = shown.getpixel((30, 20))  # type: ignore[misc]
    assert red > 200 > 50 > max(green, blue)


WIDE = (3_840, 1_000)
UNUSUAL: dict[str, Callable[[], bytes]] = {
    "a palette": lambda: samples.picture("PNG", WIDE, mode="P"),
    "black and white": lambda: samples.picture("PNG", WIDE, mode="1"),
    "gray with clear places": lambda: samples.picture("PNG", (4_000, 2_000), mode="LA"),
    "16 bits": lambda: samples.gray(WIDE, 100 * 256),
    "16 bits, small": lambda: samples.gray((60, 40), 100 * 256),
    "a phone's, with another inside": lambda: samples.picture(
        "MPO", save_all=True, append_images=[Image.new("RGB", (60, 40))]
    ),
    "noise that a PNG takes 4 MB for": lambda: samples.noisy((1_200, 1_000)),
}


@pytest.mark.parametrize("name", UNUSUAL)
async def test_a_picture_of_an_unusual_kind_is_shown_whole(name: str) -> None:
    got = await read(UNUSUAL[name](), "image/png")
    assert isinstance(got, Picture)
    shown = Image.open(io.BytesIO(got.data))
    shown.load()
    assert "16" not in name or shown.getpixel((30, 20)) == (100, 100, 100)


async def test_a_picture_is_made_smaller_upright_and_tells_no_place() -> None:
    got = await read(samples.picture("PNG", (3_840, 2_160)), "image/png")
    assert isinstance(got, Picture)
    assert Image.open(io.BytesIO(got.data)).size == (1_568, 882)
    got = await read(samples.picture("GIF", (3_500, 2_800)), "image/gif")
    assert isinstance(got, Picture)
    assert Image.open(io.BytesIO(got.data)).size == (1_568, 1_254)
    got = await read(samples.where_taken(), "image/jpeg")
    assert isinstance(got, Picture)
    upright = Image.open(io.BytesIO(got.data))
    assert upright.size == (40, 60)
    assert not upright.getexif()


async def test_of_a_large_text_no_more_is_taken_than_is_read() -> None:
    data = b"row\n" * (6 * samples.MEGABYTE)
    served, file = Served(big=data), attached("big", data)
    asked = said(ANNA, "what is it?", files=(file,))
    await FileReader(served, 60_000).read([asked], {asked.message_id}, Sight.BY_BYTES)
    assert served.taken < 1.2 * samples.MEGABYTE


async def test_a_model_that_takes_no_pictures_is_told_so_and_one_whose_provider_fetches_them_gets_the_address() -> None:
    file = attached("cat.png", b"", "image/png")
    asked = said(ANNA, "what is it?", files=(file,))
    blind = await FileReader(Served(), 60_000).read([asked], {asked.message_id}, Sight.NONE)
    assert "the model that you are is shown no pictures" in str(blind[file.key])
    fetched = await FileReader(Served(), 60_000).read([asked], {asked.message_id}, Sight.BY_ADDRESS)
    assert fetched[file.key] == Picture(file.url)


async def test_by_its_address_goes_only_what_providers_take() -> None:
    drawing, moving = b'<svg xmlns="http://www.w3.org/2000/svg"/>\n', samples.two_frames()
    files = (attached("a.svg", drawing, "image/svg+xml"), attached("b.gif", moving, "image/gif"))
    asked = said(ANNA, "what are these?", files=files)
    served = Served(**{"a.svg": drawing, "b.gif": moving})
    got = await FileReader(served, 60_000).read([asked], {asked.message_id}, Sight.BY_ADDRESS)
    svg, gif = (got[file.key] for file in files)
    assert "<svg" in str(svg)
    assert isinstance(gif, Picture)
    assert gif.kind == "image/jpeg"


def posted(author: int, *names: str, before: timedelta = timedelta()) -> MessageRecord:
    return said(author, "", files=tuple(attached(name) for name in names), at=NOON - before)


async def whose(*messages: MessageRecord, room: int = 60_000) -> dict[str, str]:
    """What is told of the files of these messages, the last of which asks."""
    names = [file.name for message in messages for file in (*message.files, *message.reply_files)]
    served = Served(**{name: f"this is {name}".encode() for name in names if name != "gone"})
    got = await FileReader(served, room).read(messages, {messages[-1].message_id}, Sight.BY_BYTES)
    return {key.rpartition("/")[2]: str(reading) for key, reading in got.items()}


async def test_what_is_asked_about_is_read_and_what_others_posted_is_not() -> None:
    told = await whose(
        posted(ANNA, "old", before=timedelta(hours=1)),
        posted(BEN, "bens"),
        posted(ANNA, "just_now", before=timedelta(minutes=1)),
        said(ANNA, "and these?", files=(attached("own"),), reply_files=(attached("quoted"),), reply_to_id=1),
    )
    assert list(told) == ["own", "quoted", "just_now"]
    assert all(f"this is {name}" in words for name, words in told.items())


async def test_the_room_of_a_turn_is_shared_and_its_files_are_counted() -> None:
    told = await whose(posted(ANNA, "first", "second"), room=5)
    assert "cut behind its first 5 characters, after line 1.)\nthis \n(End" in told["first"]
    assert "have taken up the room" in told["second"]
    told = await whose(posted(ANNA, *(f"n{n}" for n in range(12))))
    assert ["at most" in words for words in told.values()] == [False] * 10 + [True] * 2


async def test_more_pictures_than_are_shown_are_named() -> None:
    names = [f"{n}.png" for n in range(MAX_PICTURES + 1)]
    served = Served(**dict.fromkeys(names, samples.picture("PNG")))
    asked = said(ANNA, "these?", files=tuple(attached(name, b"", "image/png") for name in names))
    got = [*(await FileReader(served, 60_000).read([asked], {asked.message_id}, Sight.BY_BYTES)).values()]
    assert [isinstance(reading, Picture) for reading in got] == [True] * MAX_PICTURES + [False]


async def test_a_file_that_keeps_the_reader_busy_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "SECONDS", 0.0)
    assert "reading it took too long" in str(await read(samples.pdf(["the plan"])))


async def test_a_reader_that_ends_by_itself_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[object] = []
    monkeypatch.setattr(asyncio.subprocess.Process, "kill", lambda worker: killed.append(worker.returncode))
    monkeypatch.setattr(sandbox, "ENDING_SECONDS", 600.0)
    assert "the plan" in str(await read(samples.pdf(["the plan"])))
    assert killed == [0]


async def test_whoever_listens_for_long_keeps_nobody_from_reading() -> None:
    async def hangs(_name: str, _data: bytes, _seconds: float) -> str:
        await asyncio.Event().wait()
        return ""

    served = Served(**{"a.ogg": samples.OGG, "b.txt": b"the plan\n"})
    reader = FileReader(served, 60_000, hangs)
    heard = [said(ANNA, "and?", files=(attached("a.ogg", samples.OGG, "audio/ogg", 5.0),)) for _ in range(3)]
    listening = [asyncio.create_task(reader.read([m], {m.message_id}, Sight.BY_BYTES)) for m in heard]
    await asyncio.sleep(0)
    asked = said(ANNA, "what is it?", files=(file := attached("b.txt", b"the plan\n"),))
    async with asyncio.timeout(60.0):
        assert "the plan" in str((await reader.read([asked], {asked.message_id}, Sight.BY_BYTES))[file.key])
    for task in listening:
        task.cancel()


@pytest.mark.parametrize(
    ("data", "told", "why"),
    [
        (samples.ogg(b"\x08", 29_000), 5.0, ""),
        (samples.ogg(b"\x08", 30_010), 5.0, "up to 10 minutes"),
        (samples.OGG, 601.0, "up to 10 minutes"),
        (samples.OGG, float("nan"), "up to 10 minutes"),
        (samples.OGG + bytes(reading.MAX_AUDIO), 5.0, "up to 10 minutes"),
        (b"fLaC" + bytes(2_000), 5.0, "how long it is cannot be told"),
    ],
)
async def test_a_sound_is_listened_to_that_is_short_by_its_bytes(data: bytes, told: float, why: str) -> None:
    heard: list[tuple[str, bytes, float]] = []

    async def listen(name: str, data: bytes, seconds: float) -> str:
        heard.append((name, data, round(seconds, 2)))
        return "hello"

    file = attached("a.flac", data, "audio/flac", told)
    asked = said(ANNA, "and?", files=(file,))
    reader = FileReader(Served(**{"a.flac": data}), 60_000, listen)
    got = str((await reader.read([asked], {asked.message_id}, Sight.BY_BYTES))[file.key])
    assert (why or '"a.flac", as it was written down:) hello') in got
    assert heard == ([] if why else [("sound.ogg", data, 580.12)])


async def test_one_process_at_a_time_takes_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[str] = []
    most = 0

    async def run(job: str, _: int, chunks: AsyncIterator[bytes]) -> tuple[dict[str, str], bytes]:
        nonlocal most
        running.append(job)
        most = max(most, len(running))
        async for _chunk in chunks:
            await asyncio.sleep(0)
        running.remove(job)
        return {"problem": "broken"}, b""

    monkeypatch.setattr(reading, "run", run)
    reader = FileReader(Served(**{"a.pdf": samples.pdf(["x"])}), 60_000)
    messages = [said(ANNA, "and?", files=(attached("a.pdf"),)) for _ in range(3)]
    await asyncio.gather(*(reader.read([m], {m.message_id}, Sight.BY_BYTES) for m in messages))
    assert most == 1


async def test_what_discord_does_not_give_out_is_said() -> None:
    assert "Discord did not give it out" in (await whose(posted(ANNA, "gone")))["gone"]
