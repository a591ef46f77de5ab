"""offers/pasted.py: what programs print when they fail, and what people say of it."""

from __future__ import annotations

import pytest

from offers.pasted import pastes_error

PASTED = [
    "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    x\nNameError: name 'x'",
    '```py\n  File "/srv/app/main.py", line 42, in run\n    go()\n```',
    "I get ModuleNotFoundError: No module named 'numpy' when I start it",
    "`KeyError: 'id'`",
    "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "discord.errors.LoginFailure: x\naiohttp.client_exceptions.ClientConnectorError",
    "ImportError: cannot import name 'a' from 'b'",
    "> TypeError: undefined is not a function",
    "Uncaught (in promise) SyntaxError: Unexpected token < in JSON",
    "it says Cannot read properties of undefined (reading 'map')",
    "Error: Cannot find module 'express'\n    at Module._load (node:internal/modules/cjs/loader:985:27)",
    "weird\n    at Object.<anonymous> (/home/anna/app.js:3:7)\n    at node:internal/main:1:2",
    "npm ERR! code ERESOLVE",
    "npm error code ENOENT",
    "error Command failed with exit code 1.",
    "[UnhandledPromiseRejection: this error originated in ...]",
    'Exception in thread "main" java.lang.NullPointerException\n\tat com.foo.Main.main(Main.java:5)',
    "java.lang.IllegalStateException",
    "Caused by: org.hibernate.HibernateException: no session",
    "Unhandled exception. System.NullReferenceException: Object reference not set to an instance of an object.",
    "    at Foo.Bar.Baz() in /src/Foo.cs:line 12\n    at Foo.Main(Native Method)",
    "Error: Could not find or load main class Main",
    "FAILURE: Build failed with an exception.",
    "> Task :app:compileDebugKotlin FAILED",
    "[ERROR] Failed to execute goal org.apache.maven.plugins",
    "panic: runtime error: index out of range [3] with length 3\n\ngoroutine 1 [running]:",
    "fatal error: all goroutines are asleep - deadlock!",
    "./main.go:12:5: undefined: foo",
    "error[E0308]: mismatched types\n --> src/main.rs:2:5",
    "thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds",
    "error: could not compile `app` due to 2 previous errors",
    "main.c:5:10: fatal error: foo.h: No such file or directory",
    "main.cpp:12: error: expected ';' before 'return'",
    "undefined reference to `main'",
    "collect2: error: ld returned 1 exit status",
    "LINK : fatal error LNK1104: cannot open file",
    "main.cpp(3): error C2065: 'x': undeclared identifier",
    "src/app.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.",
    "Program.cs(3,5): error CS1002: ; expected",
    "bash: foo: command not found",
    "zsh: command not found: brew",
    "-bash: line 3: make: command not found",
    "sh: 1: nodemon: not found",
    "python3: command not found",
    "'pip' is not recognized as an internal or external command,\noperable program or batch file.",
    "ls: cannot access '/mnt/x': No such file or directory",
    "git@github.com: Permission denied (publickey).",
    "fatal: not a git repository (or any of the parent directories): .git",
    "E: Unable to locate package foo",
    "make: *** [Makefile:12: all] Error 2",
    "Segmentation fault (core dumped)",
    "Segmentation fault",
    "zsh: segmentation fault  ./a.out",
    "app[123]: segfault at 0 ip 000055d5 sp 00007ffe error 4 in app",
    "==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x60",
    "Process finished with exit code 1",
    "worker exited with code 137",
    "subprocess.CalledProcessError: Command 'x' returned non-zero exit status 1.",
    'GET /api/items HTTP/1.1" 502 0',
    '10.0.0.1 - - [02/Mar/2026] "GET / HTTP/1.1" 500 1234',
    "Request failed with status code 503",
    "2026-03-02 12:00:01,123 [main] ERROR c.f.Service - could not connect",
    "2026-03-02T12:00:01Z FATAL database is gone",
    "PHP Fatal error:  Uncaught Error: Call to undefined function",
    "Warning: Undefined variable $x in /var/www/index.php on line 12",
    "app.rb:12:in `foo': undefined method `bar' for nil (NoMethodError)",
    "ERROR 1045 (28000): Access denied for user 'root'@'localhost'",
    "SQLSTATE[HY000] [2002] Connection refused",
    "ORA-12154: TNS:could not resolve the connect identifier",
    "docker: Error response from daemon: pull access denied",
    "Windows Update says 0x80070005 every time",
    "Kernel panic - not syncing: VFS: Unable to mount root fs",
]
SAID = [
    "",
    "hello",
    "I made an error",
    "my error: I forgot to save",
    "what does exit code 1 mean?",
    "is that an error or a warning?",
    "I get an error when I start it",
    "there was an error somewhere, not found",
    "what's a TypeError?",
    "I hate NullPointerException",
    "exceptions are slow in C++",
    "with the exception of Ben, everybody is here",
    "Exception handling: yes or no?",
    "don't panic: we have time",
    "panic! at the disco",
    "no need to panic",
    "I could not find it",
    "404 not found lol",
    "page not found",
    "the command was not found in the manual",
    "permission denied by my boss",
    "fatal mistake, my friend",
    "a fatal error in judgement",
    "segmentation faults are fun",
    "what is a segmentation fault?",
    "the process failed, we need a better one",
    "he failed with grace",
    "exit through the gift shop",
    "how do I exit vim?",
    "the status: all good",
    "status 500 miles away",
    "it costs 500 dollars",
    "see https://example.org/errors/not-found",
    "meet me at 10:30",
    "12:00:01 lunch",
    "I wrote `raise ValueError`",
    "use `try: ... except KeyError`",
    "return early on line 3",
    "make me a sandwich",
    "make sure it works",
    "build failed again, sigh",
    "trace it back to the most recent call",
    "undefined behaviour is undefined",
    "E: the letter",
    "0x8 is eight",
    "the traceback was long",
    "npm is slow today",
    "rust error messages are nice",
    "error 404",
    "Error.",
    "error:",
]


@pytest.mark.parametrize("text", PASTED)
def test_what_a_program_printed_is_known(text: str) -> None:
    assert pastes_error(text)


@pytest.mark.parametrize("text", PASTED)
@pytest.mark.parametrize("form", ["hi, I get this:\n```\n{}\n```\nany ideas?", "> {}", "```{}```", "so\n{}\n\nhm"])
def test_it_is_known_within_a_message(text: str, form: str) -> None:
    assert pastes_error(form.format(text))


@pytest.mark.parametrize("text", SAID)
def test_what_people_say_is_none(text: str) -> None:
    assert not pastes_error(text)


def test_only_so_much_is_read() -> None:
    assert not pastes_error("x" * 4_000 + "\nnpm ERR! code ERESOLVE")
