"""files/worker.py: what it takes of memory, whatever it is given."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from files.sandbox import ENVIRONMENT, WORKER
from tests.support import samples

MOST_MEGABYTES = 64  # with the interpreter, which takes 10 or more of them, as it was built
# A small process of its own starts the worker, since what is measured begins with the size of whoever starts it.
MEASURED = (
    "import resource, subprocess, sys\n"
    "done = subprocess.run(sys.argv[2:], stdin=open(sys.argv[1], 'rb'), capture_output=True)\n"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, done.stdout[:60])"
)
HEAVY: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a screenshot in 4K": ("picture", lambda: samples.picture("PNG", (3_840, 2_160), mode="RGBA")),
    "a photo of 48 megapixels": ("picture", lambda: samples.picture("JPEG", (8_000, 6_000))),
    "a WebP in 4K": ("picture", lambda: samples.picture("WEBP", (3_840, 2_160))),
    "a GIF of 33 megapixels": ("picture", lambda: samples.picture("GIF", (5_800, 5_800))),
    "a progressive photo of 48 megapixels": (
        "picture",
        lambda: samples.picture("JPEG", (8_000, 6_000), progressive=True),
    ),
    "a picture that is a bomb": ("picture", samples.bomb),
    "a palette in 4K": ("picture", lambda: samples.picture("PNG", (3_840, 2_160), mode="P", transparency=0)),
    "16 bits in 4K": ("picture", lambda: samples.gray((3_840, 2_160), 999)),
    "noise with clear places": ("picture", lambda: samples.noisy((1_390, 1_390))),
    "200 pages": ("pdf", lambda: samples.pdf(["many words " * 200] * 200)),
    "a PDF with a password": ("pdf", lambda: samples.locked("secret")),
    "a PDF that is a bomb": ("pdf", lambda: samples.pdf(["x"], stream=samples.packed_zeroes(200))),
    "a PDF of 8 MB": ("pdf", lambda: samples.pdf(["x"]) + bytes(7_900_000)),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="bounded by what Linux has for it")
@pytest.mark.parametrize("name", HEAVY)
def test_no_file_takes_much_memory(name: str, tmp_path: Path) -> None:
    job, make = HEAVY[name]
    file = tmp_path / "file"
    file.write_bytes(make())
    work = [sys.executable, "-I", str(WORKER), job, "60000" if job == "pdf" else "1568"]
    run = [sys.executable, "-I", "-c", MEASURED, str(file), *work]
    megabytes, told = subprocess.run(run, capture_output=True, env=ENVIRONMENT, check=True, text=True).stdout.split(
        " ", 1
    )
    assert int(megabytes) < MOST_MEGABYTES
    assert "{" in told
