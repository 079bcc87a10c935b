"""Under any system limit the program works, or names the limit that is too low and ends. It never hangs or crashes."""

import os
import shutil
import signal
import subprocess

from expectations import wait_for
from harness import WORKER, Skipped


def scenario(fixture):
    if os.geteuid() != 0:
        raise Skipped("only root can run the program as another user")
    fixture.generate_keys()
    grants = fixture.sandbox.create(3)
    fixture.import_grants(grants)
    user_id = grants[0]["email"]
    # The program runs as a separate user, whose processes are counted alone. That user must be able to reach the files.
    program = fixture.folder / "refresh-worker"
    shutil.copy(WORKER, program)
    fixture.folder.chmod(0o711)
    user = 3_000_000 + os.getpid() % 100_000
    for path in [fixture.folder, *fixture.folder.iterdir()]:
        os.chown(path, user, user)
    outcomes = {}
    runs = []

    def run(limit, *command, expect=None, stop=False):
        metrics = fixture.folder / f"limits-{len(runs)}.jsonl"
        runs.append(limit)
        words = fixture.arguments("--metrics-log", metrics, *command)
        words[0] = str(program)
        process = subprocess.Popen(
            [
                "setpriv",
                f"--reuid={user}",
                f"--regid={user}",
                "--clear-groups",
                "bash",
                "-c",
                f'{limit}; exec "$@"',
                "bash",
                *words,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=fixture.environment,
            cwd="/",
        )
        try:
            if stop:
                wait_for(
                    lambda: metrics.exists() and '"started"' in metrics.read_text(), 60, f"{limit}: the daemon starts"
                )
                process.send_signal(signal.SIGTERM)
            output, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"`{command}` with {limit} ends within a minute") from None
        finally:
            process.kill()
        code = process.returncode
        outcomes.setdefault(code, []).append(f"{limit.removeprefix('ulimit ')} {' '.join(command)}".strip())
        # 127 comes from the system: its loader could not map the libraries.
        allowed = {0, 74, 75, 78, 127}
        assert code in allowed, f"`{command}` with {limit} exits with an allowed code; it wrote: {errors[-500:]}"
        assert code == 0 or errors.strip(), f"`{command}` with {limit} gives the reason of its failure"
        if expect:
            assert expect in errors, f"`{command}` with {limit} names the limit"

    for files in [8, 10, 12, 14, 16, 17, 18, 19, 24, 32, 40]:
        run(f"ulimit -n {files}", "grants", "list", expect="RLIMIT_NOFILE")
        run(f"ulimit -n {files}", "--run-once", expect="LimitNOFILE")
    # Between a limit that is refused and an ample one, a command also does its work, including the refresh.
    for files in [42, 44, 46, 48, 49, 50, 51, 52, 53, 54, 56, 60, 64]:
        run(f"ulimit -n {files}", "token", user_id, "--min-ttl", "86400")
    run("ulimit -n 64", "grants", "list")
    run("ulimit -n 256", "--run-once")
    for megabytes in [40, 60, 100, 160, 200, 220, 260, 300]:
        run(f"ulimit -v {megabytes * 1024}", "grants", "list")
        run(f"ulimit -v {megabytes * 1024}", "--run-once")
    for processes in [1, 2, 3, 4, 8]:
        run(f"ulimit -u {processes}", "grants", "list", expect="threads")
        run(f"ulimit -u {processes}", "token", user_id, "--min-ttl", "86400", expect="threads")
        run(f"ulimit -u {processes}", "grants", "disconnect", user_id, expect="threads")
        run(f"ulimit -u {processes}", expect="threads")
    for files in [8, 16, 24, 40, 52, 64]:
        run(f"ulimit -n {files}", "grants", "disconnect", user_id)
    # With ample limits the daemon runs, and a signal ends it.
    run("ulimit -n 256; ulimit -u 200; ulimit -v 8388608", stop=True)
    return "; ".join(f"exit {code}: {len(runs)}" for code, runs in sorted(outcomes.items()))
