"""Broken connections to the token server, over TLS: name lookups, connects, sends and receives fail by chance."""

import errno
import subprocess

from trial import Template, Trial
from verification import check_integrity, verify

GRANTS = 120
SPAN = 5


def template(base):
    certificate = base / "server.pem"
    if not certificate.exists():
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-keyout",
                certificate,
                "-out",
                base / "cert.pem",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost",
            ],
            check=True,
            capture_output=True,
        )
        with open(certificate, "a") as file:
            file.write((base / "cert.pem").read_text())
    return Template(base, GRANTS)


def plan(chance):
    rate = chance.choice([0.01, 0.05, 0.2])
    return chance.sample([
        f"fail:resolve/net:p={rate}",
        f"fail:connect/net:p={rate}:{chance.choice([errno.ECONNREFUSED, errno.ENETUNREACH, errno.ETIMEDOUT])}",
        f"fail:send/net:p={rate}:{errno.ECONNRESET}",
        f"short:send/net:p={rate}:{errno.EPIPE}",
        f"fail:receive/net:p={rate}:{errno.ECONNRESET}",
        f"short:receive/net:p={min(1, rate * 4)}",
    ], chance.randrange(2, 5))


def trial(part, seed, index, base, template):
    with Trial(part, seed, index, base, template, lifetime=2, certificate=base / "server.pem") as one:
        # Every second server accepts the token before the newest one: then nothing may be lost at all.
        one.google.grace = index % 2 == 1
        rules = plan(one.chance)
        one.note(f"{';'.join(rules)}; {'with' if one.google.grace else 'without'} grace")
        worker = one.start(rules=rules)
        worker.wait_for(lambda: '"started"' in worker.text(), 30, "the worker starts")
        one.control.set(one.control.ON, 1)
        code = worker.wait(SPAN)
        one.control.set(one.control.ON, 0)
        assert code is None, f"the worker runs; it wrote: {worker.output()}"
        target = one.google.requests + GRANTS // 2
        worker.wait_for(lambda: one.google.requests >= target, 60, "the worker asks again after the faults have ended")
        assert worker.stop() == 0, f"the worker stops in order; it wrote: {worker.output()}"
        counts = verify(one)
        assert not one.google.grace or one.google.refusals == 0, "a server with grace refuses no token"
        check_integrity(one.database)
        return {**counts, "faults": one.control.hits()}, one.notes
