"""What the proof of a bound refresh token costs: the instructions of a refresh against those of an unbound one."""

from cases import instructions
from harness import contenders, endpoint, report

TITLE = "A refresh with a proof (DPoP) against one without"


def measure(scale, folder):
    """The same two runs as for `instructions`, so that the start, the end and the handshakes cancel out."""
    shim = instructions.build_shim(folder)
    counts, max_rate = scale.pick(instructions.RUNS, instructions.SHORT_RUNS)["h2"]
    figures = {"counts": list(counts)}
    with endpoint.Endpoint(folder / "endpoint") as site:
        for name, bound in [("unbound", False), ("bound", True)]:
            worker = contenders.Worker("h2", max_rate=max_rate, bound=bound)
            figures[name] = instructions.of_one_refresh(site, folder, shim, worker, counts)
            scale.say(f"{name}: {figures[name]:,.0f} instructions each")
    return figures


def tables(figures):
    ratio = figures["bound"] / figures["unbound"]
    rows = [["unbound", f"{figures['unbound']:,.0f}", ""], ["bound", f"{figures['bound']:,.0f}", f"{ratio:.2f}"]]
    return ("In user space over HTTP/2, counted by Valgrind's Callgrind. The difference is one signature with P-256, "
            "its header, and the search for the next nonce in the response.\n\n"
            + report.table(["refresh token", "instructions of a refresh", "against unbound"], rows))


def charts(_figures):
    return {}


def goals(_figures):
    return []
