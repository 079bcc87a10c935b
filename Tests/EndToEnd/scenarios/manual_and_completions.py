"""man and mandoc accept the manual pages; bash, zsh and fish complete commands, flags, values and files."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

from harness import WORKER, Skipped

TOOLS = ["bash", "fish", "man", "mandoc", "zsh"]
# A typed line, and the words that the shell must offer.
CASES = [
    ("refresh-worker gra", ["grants"]),
    ("refresh-worker grants dis", ["disconnect"]),
    ("refresh-worker --log-level debug grants li", ["list"]),
    ("refresh-worker help grants li", ["list"]),
    ("refresh-worker grants list --sta", ["--state"]),
    ("refresh-worker grants list --state act", ["active"]),
    ("refresh-worker grants list --state re", ["reauth_required", "retrying"]),
    ("refresh-worker help --format refresh-worker.c", ["refresh-worker.conf.5"]),
    ("refresh-worker grants import sam", ["sample file.jsonl"]),
    ("refresh-worker --ca-file sam", ["sample file.jsonl"]),
]


def scenario(fixture):
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise Skipped(f"{', '.join(missing)} is not installed")
    texts = {name: written(name) for name in ["refresh-worker.1", "refresh-worker.conf.5", "bash", "zsh", "fish"]}
    for name, text in texts.items():
        (fixture.folder / name).write_text(text)
    for page in ["refresh-worker.1", "refresh-worker.conf.5"]:
        check_page(fixture.folder / page)
    folder = fixture.folder / "typed"
    folder.mkdir()
    (folder / "sample file.jsonl").touch()
    for line, expected in CASES:
        for shell, complete in [("bash", bash), ("fish", fish)]:
            offered = complete(fixture.folder / shell, folder, line)
            assert offered == expected, f"{shell} completes `{line}`"
    check_zsh(fixture, folder)
    return f"{len(CASES)} completions in 3 shells"


def written(form):
    done = subprocess.run([WORKER, "help", "--format", form], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, f"{form} is written"
    return done.stdout


def check_page(page):
    """No tool has a complaint, and flags and paths are shown as they are typed."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANROFFSEQ": "", "MANPAGER": "cat"}
    done = subprocess.run(
        ["man", "--warnings", "--local-file", "--encoding=UTF-8", "--troff-device=utf8", "--ditroff", str(page)],
        capture_output=True, text=True, timeout=60, env=environment,
    )
    assert done.returncode == 0 and not done.stderr, f"man has no warning about {page.name}: {done.stderr}"
    # Pages have no date, so that builds of one version are equal.
    lint = subprocess.run(["mandoc", "-Tlint", str(page)], capture_output=True, text=True, timeout=60)
    complaints = [line for line in lint.stdout.splitlines() if "missing date" not in line]
    assert not complaints, f"mandoc has no complaint about {page.name}"
    shown = subprocess.run(["mandoc", "-Tutf8", str(page)], capture_output=True, text=True, timeout=60).stdout
    plain = re.sub(".\b", "", shown)
    assert "--max-rate" in plain and "/etc/refresh-worker/refresh-worker.conf" in plain, "text can be copied"


def bash(script, folder, line):
    done = subprocess.run(
        ["bash", "--norc", "-c",
         'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _refresh_worker; '
         'printf "%s\\n" "${COMPREPLY[@]}"', "bash", str(script), *line.split()],
        capture_output=True, text=True, timeout=60, cwd=folder,
    )
    assert not done.stderr, f"bash has no complaint about `{line}`"
    return sorted(done.stdout.splitlines())


def fish(script, folder, line):
    done = subprocess.run(
        ["fish", "--no-config", "-c", 'source $argv[1]; complete -C "$argv[2]"', str(script), line],
        capture_output=True, text=True, timeout=60, cwd=folder, env={**os.environ, "HOME": str(folder)},
    )
    assert not done.stderr, f"fish has no complaint about `{line}`"
    return sorted(offer.split("\t")[0].replace("\\ ", " ") for offer in done.stdout.splitlines())


def check_zsh(fixture, folder):
    """Types the lines on a terminal, because zsh completes only there."""
    functions = fixture.folder / "functions"
    functions.mkdir()
    shutil.copy(fixture.folder / "zsh", functions / "_refresh-worker")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ.update(TERM="dumb", LC_ALL="C.UTF-8", HOME=str(folder), ZDOTDIR=str(folder))
        os.execvp("zsh", ["zsh", "-f", "-i"])
    try:
        send(terminal, f"unset zle_bracketed_paste; fpath=({functions} $fpath); autoload -U compinit; compinit -D -u; "
                       "bindkey '^I' complete-word; echo load''ed\n")
        read_until(terminal, "loaded")
        for line, expected in CASES:
            # The completed line is shown without being run.
            send(terminal, f"{line}\t")
            send(terminal, "\x01print -r -- shown: \x05; echo e''nd\n")
            shown = read_until(terminal, "end").replace("\r", "")
            if len(expected) == 1:
                wanted = line.rsplit(" ", 1)[0] + " " + expected[0]
                printed = [text for text in shown.split("\n") if text.startswith("shown: ")]
                assert printed and printed[-1].removeprefix("shown: ").strip() == wanted, (
                    f"zsh completes `{line}` to `{wanted}`: {shown}"
                )
            else:
                assert all(word in shown for word in expected), f"zsh offers {expected}: {shown}"
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def send(terminal, text):
    os.write(terminal, text.encode())


def read_until(terminal, word):
    """Returns the output up to a line that begins with a word."""
    output, deadline = "", time.monotonic() + 20
    while not re.search(rf"^{word}\r?$", output, re.MULTILINE):
        assert time.monotonic() < deadline, f"zsh prints {word}: {output}"
        if select.select([terminal], [], [], 0.2)[0]:
            output += os.read(terminal, 4096).decode(errors="replace")
    return output
