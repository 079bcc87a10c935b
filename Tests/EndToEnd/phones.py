"""Phones that call a backend continuously, as the apps of PayPulse and ComprehensionEngine do, and record every
refusal."""

import collections
import http.client
import json
import random
import threading

from accounts import Answer, headers_of
from browser_page import Page
from expectations import wait_for


class Phone:
    """One installation of an app, with its own address."""

    def __init__(self, number, port):
        self.address = f"127.{1 + number // 62_500}.{number // 250 % 250}.{1 + number % 250}"
        self.port = port
        self.random = random.Random(number)
        self.rounds = 0
        # `False` until the worker must have complete data about the user.
        self.is_copied = True

    def call(self, method, path, bearer=None, body=None, headers=None):
        headers = dict(headers or {})
        if bearer:
            headers["Authorization"] = f"Bearer {bearer}"
        if body is not None:
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60, source_address=(self.address, 0))
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, headers_of(answer), answer.read())
        finally:
            connection.close()

    def expect(self, answer, what, expected=None):
        if answer.status != 200:
            raise Refused(f"{what}: {answer.status} {answer.body[:200]!r}")
        if expected is not None and self.is_copied:
            members = {name: answer.json.get("data", answer.json).get(name) for name in expected}
            if members != expected:
                raise Refused(f"{what}: {members}, not {expected}")


class Refused(Exception):
    """A phone got another answer than before."""


class SignedOut(Exception):
    """A phone lost its session."""


class PayPulsePhone(Phone):
    """Logs in for a day, and reads the profile."""

    def __init__(self, number, port, token, profile):
        super().__init__(number, port)
        self.token = token
        self.profile = profile

    def step(self):
        self.expect(self.call("GET", "/v1/user/me", self.token), "PayPulse's profile", self.profile)
        self.expect(self.call("GET", "/v1/invoices", self.token), "PayPulse's invoices")


class EnginePhone(Phone):
    """Keeps a pair of tokens; each of its calls renews them after a 401."""

    def __init__(self, number, port, pair, user):
        super().__init__(number, port)
        self.pair = pair
        self.user = user
        self.refreshes = 0
        self.may_restart = True

    def step(self):
        kind = self.random.choice(["call", "call", "start", "burst"])
        if kind == "start" and self.may_restart:
            self.refresh()
        if kind == "burst":
            return self.burst()
        self.fetch("/api/auth/me")
        self.fetch("/api/conversations")
        return None

    def burst(self):
        """Calls on separate connections, which overtake each other."""
        problems = []

        def fetch(path):
            try:
                self.fetch(path)
            except Exception as problem:
                problems.append(problem)

        threads = [threading.Thread(target=fetch, args=(path,)) for path in ["/api/auth/me", "/api/conversations"] * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if problems:
            raise problems[0]

    def fetch(self, path):
        answer = self.call("GET", path, self.pair["access_token"])
        if answer.status == 401:
            self.refresh()
            answer = self.call("GET", path, self.pair["access_token"])
        self.expect(answer, path, self.user if path == "/api/auth/me" else None)

    def refresh(self):
        answer = self.call("POST", "/api/auth/refresh", body={"refresh_token": self.pair["refresh_token"]})
        if answer.status == 401:
            raise SignedOut(f"refresh: {answer.body[:200]!r}")
        self.expect(answer, "refresh")
        # The answer that comes last is kept.
        self.pair = answer.json
        self.refreshes += 1


class WebUser(Phone):
    """A browser with ComprehensionEngine's web front end, which shows the profile, and whose user logs out and in."""

    def __init__(self, number, port, user):
        super().__init__(number, port)
        self.user = user
        self.page = Page(self)

    def step(self):
        if not self.page.cookies:
            self.page.visit(f"/api/auth/callback?user={self.user['id']}")
        answer = self.page.fetch("GET", "/api/auth/me")
        if answer.status == 401:
            self.expect(self.page.fetch("POST", "/api/auth/refresh"), "the page's refresh")
            answer = self.page.fetch("GET", "/api/auth/me")
        self.expect(answer, "the page's profile", self.user)
        if self.random.randrange(4) == 0:
            self.expect(self.page.fetch("POST", "/api/auth/logout"), "the page's log-out")
            if self.page.cookies:
                raise Refused(f"the log-out leaves cookies: {set(self.page.cookies)}")
            answer = self.page.fetch("GET", "/api/auth/me")
            if answer.status != 401:
                raise Refused(f"after the log-out, the page gets {answer.status}")


class Crowd:
    """Phones that take turns: as fast as a few threads can drive them while a scenario waits for them, else slower, so
    that the machine has time for what they call."""

    PAUSE = 0.1
    # More threads only take the interpreter from the former backends, which run in this process too.
    def __init__(self, threads=4):
        self.phones = []
        self.queue = collections.deque()
        self.problems = []
        self.ended = threading.Event()
        self.pause = self.PAUSE
        self.threads = [threading.Thread(target=self.drive, daemon=True) for _ in range(threads)]

    def add(self, phone):
        self.phones.append(phone)
        self.queue.append(phone)

    def start(self):
        for thread in self.threads:
            thread.start()

    def drive(self):
        while not self.ended.is_set():
            try:
                phone = self.queue.popleft()
            except IndexError:
                self.ended.wait(0.05)
                continue
            try:
                phone.step()
            except Exception as problem:
                self.problems.append(f"{type(problem).__name__}: {type(phone).__name__} {phone.address}: {problem}")
            phone.rounds += 1
            self.queue.append(phone)
            self.ended.wait(self.pause)

    def wait(self, message, condition=None, rounds=1):
        """Waits until each phone has completed `rounds` more rounds and meets the condition."""
        goals = [(phone, phone.rounds + rounds + 1) for phone in list(self.phones)]
        self.pause = 0
        wait_for(
            lambda: self.problems or all(
                phone.rounds >= goal and (condition is None or condition(phone)) for phone, goal in goals
            ),
            300, f"every phone: {message}",
        )
        self.pause = self.PAUSE
        self.check(message)

    def check(self, message):
        shown = "\n    ".join(self.problems[:5])
        assert not self.problems, (
            f"{message}: every phone gets what it asks for; {len(self.problems)} problems:\n    {shown}"
        )

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            if thread.ident:
                thread.join()
