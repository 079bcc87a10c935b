"""PostgreSQL: two workers, kills of workers, sessions and servers, and cuts of the network between a worker and its
server."""

import os
import shutil
import subprocess

from expectations import wait_for
from postgres_server import Server
from proxy import Proxy
from trial import ORDERLY, Template, Trial, command, pause
from verification import verify

GRANTS = 120
EVENTS = 5  # kills or cuts in each trial
RECOVERY_SECONDS = 100
# Most of a trial is spent waiting for leases to end and for connections to come back.
JOBS_FACTOR = 3


class PostgresTemplate(Template):
    """A server's folder with grants that are all due."""

    kind = "postgres"

    def make(self):
        self.folder.mkdir(parents=True)
        server = Server(self.folder)
        try:
            command(self.arguments(server.url), "keys", "generate")
            command(self.arguments(server.url), "grants", "import", "-", stdin=self.lines())
            rows = server.query("SELECT id, user_id FROM refresh_worker.grants")
        finally:
            server.stop("fast")
        lines = [f"{row['id'] & (1 << 64) - 1:016x} {row['user_id']}\n" for row in rows]
        (self.folder / "users").write_text("".join(lines))
        (self.folder / "done").touch()

    def arguments(self, database=None):
        arguments = super().arguments()
        return [*arguments[:2], database, *arguments[3:]] if database else arguments

    def read_users(self):
        return dict(line.split() for line in (self.folder / "users").read_text().splitlines())

    def copy(self, folder):
        folder.mkdir(parents=True)
        shutil.copy2(self.folder / "keys", folder / "keys")
        # The server's files belong to its own user.
        subprocess.run(["cp", "-a", self.folder / "postgres", folder.parent / "postgres"], check=True)


def template(base):
    return PostgresTemplate(base, GRANTS)


def address(proxy):
    return f"postgres://postgres@127.0.0.1:{proxy.port}/postgres?sslmode=disable"


class Pair:
    """A server and two workers, the first of them behind a proxy, or both."""

    def __init__(self, one, proxied=1):
        self.one = one
        self.server = Server(one.folder)
        self.proxy = Proxy(self.server.folder / ".s.PGSQL.5432")
        one.database = self.server.url
        self.databases = [address(self.proxy)] * proxied + [self.server.url] * (2 - proxied)
        self.workers = [self.start(0), self.start(1)]
        for worker in self.workers:
            worker.wait_for(lambda: '"started"' in worker.text(), 30, "the worker starts")

    def start(self, number, rules=()):
        self.one.database, direct = self.databases[number], self.one.database
        worker = self.one.start(rules=rules)
        self.one.database = direct
        return worker

    def revive(self):
        """Restarts the workers that have ended, as systemd would."""
        for number, worker in enumerate(self.workers):
            code = worker.wait(0)
            if code is None:
                continue
            assert code == -9 or code in ORDERLY, f"the worker ends in order; it wrote: {worker.output()}"
            self.workers[number] = self.start(number)

    def recover(self):
        """Waits until refreshes continue after the last fault, and stops the workers."""
        self.revive()
        target = self.one.google.requests + GRANTS

        def refreshes_again():
            self.revive()
            return self.one.google.requests >= target

        wait_for(refreshes_again, RECOVERY_SECONDS, lambda: "the workers refresh again; they wrote: " + self.output())
        for worker in self.workers:
            assert worker.stop(60) == 0, f"the worker stops in order after the faults; it wrote: {worker.output()}"

    def output(self):
        return "".join(worker.output() for worker in self.workers)

    def close(self):
        self.proxy.close()
        for worker in self.one.workers:
            worker.end()
        self.server.stop()


def kill_worker(pair, chance):
    number = chance.randrange(2)
    pair.workers[number].end()


def kill_worker_at_call(pair, chance):
    """The worker behind the proxy dies at a call to the token server or to the database; both are counted."""
    pair.workers[0].end()
    for word in range(pair.one.control.FIRST_RULE, pair.one.control.WORDS):
        pair.one.control.set(word, 0)
    pair.one.control.set(pair.one.control.ON, 1)
    kind = chance.choice(["send", "receive"])
    pair.workers[0] = pair.start(0, [f"kill:{kind}/net:n={chance.randrange(20, 400)}"])
    pair.workers[0].wait(5)
    pair.workers[0].end()
    pair.one.control.set(pair.one.control.ON, 0)


def end_sessions(pair, chance):
    pair.server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND"
                        f" backend_type = 'client backend' AND random() < {chance.choice([0.3, 1])}")


def kill_backend(pair, chance):
    """kill -9 of a session's process: the server ends all sessions and recovers."""
    rows = pair.server.query("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND"
                             " backend_type = 'client backend'")
    if rows:
        os.kill(chance.choice(rows)["pid"], 9)


def restart_server(pair, chance):
    pair.server.stop(chance.choice(["immediate", "fast"]))
    pause(chance.choice([0, 0.5, 2]))
    pair.server.start()


def run_trial(part, seed, index, base, template, event):
    with Trial(part, seed, index, base, template, lifetime=4) as one:
        pair = Pair(one)
        try:
            for _ in range(EVENTS):
                # At some point within a round of refreshes.
                pause(0.3 + one.chance.random())
                one.note(event(pair, one.chance))
                pause(one.chance.random())
                pair.revive()
            pair.recover()
            counts = verify(one)
        finally:
            pair.close()
        return {**counts, "faults": EVENTS}, one.notes


def kill_something(pair, chance):
    action = chance.choice([kill_worker, kill_worker, kill_worker_at_call, end_sessions, kill_backend, restart_server])
    action(pair, chance)
    return action.__name__


def cut(pair, chance):
    kind = chance.choice(["reset", "nothing passes", "requests pass", "answers pass"])
    seconds = chance.choice([0.1, 1, 3, 12])
    if kind == "reset":
        pair.proxy.reset()
        return kind
    pair.proxy.pass_only(*([] if kind == "nothing passes" else [kind.split()[0]]))
    pause(seconds)
    if chance.random() < 0.5:
        pair.proxy.reset()
    pair.proxy.pass_only("requests", "answers")
    return f"{kind} for {seconds} s"


def trial(part, seed, index, base, template):
    return run_trial(part, seed, index, base, template, kill_something)
