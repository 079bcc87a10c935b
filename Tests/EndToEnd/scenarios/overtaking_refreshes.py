"""Apps whose refreshes overtake each other, lose answers, and get answers an hour late: all of them stay signed in."""

import asyncio
import json
import random

from accounts import Accounts
from expectations import wait_for
from faults import Clocks
from phone_network import PhoneNetwork, post

FAMILIES = 200
CALLS = 8
GROUP = 25
PATH = "/api/auth/refresh"


class Phone:
    """A realistic app: each call that gets a 401 refreshes on its own, and stores the answer."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.is_signed_out = False

    async def refresh(self, port, after=0.0):
        # A seeded schedule of calls.
        await asyncio.sleep(after)
        body = json.dumps({"refresh_token": self.tokens["refresh_token"]}).encode()
        answer = await post(port, PATH, body)
        if answer is None:
            return
        status, content = answer
        if status == 200:
            self.tokens = json.loads(content)
        else:
            self.is_signed_out = True


def scenario(fixture):
    accounts = Accounts(fixture)
    grant = fixture.sandbox.create(email="ada@gmail.com")[0]
    phones = [Phone(accounts.sign_in(grant)) for _ in range(FAMILIES)]
    network = PhoneNetwork(accounts.port, seed=1)
    clocks = Clocks(fixture, accounts)
    cut = 0
    for jitter in (0.0, 0.1, 0.3):
        for fraction in (0.0, 0.1):
            network.jitter, network.cut = jitter, fraction
            asyncio.run(all_at_once(phones, network.port, jitter))
            expect_signed_in(phones, f"{CALLS} calls at once, {jitter} s of jitter, {fraction:.0%} of the answers lost")
        cut += network.cuts
    assert cut > 0, "the network drops responses"
    # The token that each phone was left with is valid hours later, after the grace.
    network.jitter = network.cut = 0.0
    for _ in range(2):
        clocks.advance(7200)
        asyncio.run(each_once(phones, network.port))
        expect_signed_in(phones, "two hours later")
    late_answers(accounts, network, clocks, phones)
    reuse(accounts, clocks, phones[0])
    network.close()
    accounts.close()
    return f"{FAMILIES} families, {CALLS} calls at once, {network.cuts} answers lost, {network.held} held back"


async def all_at_once(phones, port, jitter):
    starts = random.Random(jitter)
    for first in range(0, len(phones), GROUP):
        group = phones[first:first + GROUP]
        await asyncio.gather(*[
            phone.refresh(port, starts.random() * jitter) for phone in group for _ in range(CALLS)
        ])
        await each_once(group, port)


async def each_once(phones, port):
    for first in range(0, len(phones), 8 * GROUP):
        await asyncio.gather(*[phone.refresh(port) for phone in phones[first:first + 8 * GROUP]])


def expect_signed_in(phones, when):
    lost = sum(phone.is_signed_out for phone in phones)
    assert not lost, f"every phone is still signed in: {when}"


def late_answers(accounts, network, clocks, phones):
    """An answer is held back while half of the phones refresh again; then it arrives and replaces their tokens."""
    for seconds in (15, 60, 3600):
        asyncio.run(held_back(network, clocks, phones[:20], seconds))
        expect_signed_in(phones, f"an answer held back for {seconds} s")
        clocks.advance(3600)
        asyncio.run(each_once(phones[:20], network.port))
        expect_signed_in(phones, f"an hour after an answer that was held back for {seconds} s")


async def held_back(network, clocks, phones, seconds):
    network.hold(len(phones))
    waiting = [asyncio.create_task(phone.refresh(network.port)) for phone in phones]
    await network.wait_held()
    await asyncio.to_thread(clocks.advance, seconds)
    network.holds = False
    await each_once(phones[::2], network.port)
    network.release()
    await asyncio.gather(*waiting)
    await each_once(phones, network.port)


def reuse(accounts, clocks, phone):
    """A copy of a spent token, used after its successor: the session ends for both, and one line says so."""
    stolen = phone.tokens["refresh_token"]
    for _ in range(2):
        clocks.advance(120)
        asyncio.run(phone.refresh(accounts.port))
        assert not phone.is_signed_out, "the owner is signed in before the theft"
    accounts.public.post(PATH, {"refresh_token": stolen}).expect(401)
    accounts.public.post(PATH, {"refresh_token": phone.tokens["refresh_token"]}).expect(401)
    accounts.public.get("/api/auth/me", phone.tokens["access_token"]).expect(401)
    log = accounts.worker.errors
    wait_for(lambda: log.read_text().count("a spent refresh token was presented") == 1, 60, "one line about the reuse")
