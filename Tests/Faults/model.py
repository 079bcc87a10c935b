"""The power-cut model itself: what was synced survives, and what was not is lost, torn or reordered.

If the model lost nothing, the part `power` would pass for any program. Every second trial therefore omits the worker's
syncs: the verification must find lost tokens. The other trials check the model's rules, on files alone.
"""

import pathlib

from disk import PAGE, SECTOR, Disk, File, chance_for
from trial import Template, Trial
from verification import verify

GRANTS = 120
# Enough draws for outcomes with a probability of a few percent to occur.
DRAWS = 300
# A folder that does not exist: the rules of names need no files.
FOLDER = pathlib.Path("/no-such-folder")


def template(base):
    return Template(base, GRANTS)


def trial(part, seed, index, base, template):
    if index % 2:
        return without_syncs(part, seed, index, base, template)
    chance = chance_for(part, seed, index)
    rules = [keeps_synced, loses_unsynced, tears, reorders, forgets_after_failed_sync, loses_names]
    for rule in rules:
        rule(chance)
    return {"rules of the model": len(rules)}, []


def without_syncs(part, seed, index, base, template):
    """Cuts the power of a worker without syncs: the verification must find that reported tokens are lost."""
    with Trial(part, seed, index, base, template, lifetime=2) as one:
        disk = Disk(one.disk, chance_for("disk", part, seed, index))
        one.control.set(one.control.ON, 1)
        # Only the log's syncs, so that content is lost, or all of them, so that names are.
        rule = "omit:sync/wal:p=1" if index % 4 == 1 else "omit:sync/*:p=1"
        worker = one.start(rules=[rule], journal=True)
        worker.wait_for(lambda: worker.text().count('"refreshed"') > GRANTS, 60, "grants are refreshed")
        one.control.set(one.control.POWER_OFF, 1)
        worker.end()
        omitted = one.control.hits()
        disk.replay(one.journal)
        one.note(f"{rule}; {disk.cut(fraction=0)}")
        one.new_boot()
        one.control.set(one.control.POWER_OFF, 0)
        one.control.set(one.control.ON, 0)
        problems = refusal(one)
        one.note(problems)
        assert "reported tokens lost" in problems, f"the tokens that {omitted} omitted syncs lose are found"
        return {"power cuts without syncs": 1, "of these with lost tokens": 1, "syncs left out": omitted}, one.notes


def refusal(one):
    """Returns the problems that the verification finds, or an empty text."""
    try:
        verify(one)
    except AssertionError as error:
        return str(error)
    return ""


def page(letter):
    return letter * PAGE


TWO_PAGES = page(b"0") * 2


def after(chance, fraction, *steps, content=TWO_PAGES):
    """Returns the content of a file of two pages after some steps and a cut."""
    file = File(content)
    for step in steps:
        step(file)
    return file.after_cut(chance, fraction)


def keeps_synced(chance):
    """Random writes, cuts of the length and failed syncs: after a complete write and a sync, everything survives."""
    for _ in range(DRAWS):
        file = File(page(b"0") * 3)
        for _ in range(chance.randrange(12)):
            draw = chance.random()
            if draw < 0.6:
                file.write(chance.randrange(3 * PAGE), chance.randbytes(chance.randrange(1, 2 * PAGE)), chance)
            elif draw < 0.8:
                file.truncate(chance.randrange(4 * PAGE))
            elif draw < 0.9:
                file.sync()
            else:
                file.fail_sync(chance)
        file.write(0, bytes(file.seen) or b"0", chance)
        file.sync()
        durable = bytes(file.seen)
        for fraction in (0, 0.5, 1):
            assert file.after_cut(chance, fraction) == durable, "what was synced survives"


def loses_unsynced(chance):
    content = after(chance, 0, lambda file: file.write(0, page(b"1"), chance))
    assert content == page(b"0") * 2, "if no dirty sector survives, the file is as the last sync left it"


def tears(chance):
    """One write of a page: each sector is old or new, and both occur in one page."""
    torn = 0
    for _ in range(DRAWS):
        content = after(chance, 0.5, lambda file: file.write(0, page(b"1"), chance))
        sectors = {content[position:position + SECTOR] for position in range(0, PAGE, SECTOR)}
        assert sectors <= {b"0" * SECTOR, b"1" * SECTOR}, "a sector is whole"
        torn += len(sectors) == 2
    assert torn, "a page may be torn"


def reorders(chance):
    """Two writes in order: the second one may survive without the first."""
    outcomes = set()
    for _ in range(DRAWS):
        content = after(
            chance,
            0.5,
            lambda file: file.write(0, b"1" * SECTOR, chance),
            lambda file: file.write(PAGE, b"1" * SECTOR, chance),
        )
        outcomes.add((content[0:1], content[PAGE:PAGE + 1]))
    assert (b"0", b"1") in outcomes, "writes may reach the disk in another order"
    assert len(outcomes) == 4, "each of two writes may survive or not"


def forgets_after_failed_sync(chance):
    """A page that a failed sync dropped is not written by the next sync; reads see it until the cut."""
    lost = 0
    for _ in range(DRAWS):
        file = File(page(b"0"))
        file.write(0, page(b"1"), chance)
        file.fail_sync(chance)
        file.sync()
        assert bytes(file.seen) == page(b"1"), "reads see what was written, whatever the sync said"
        lost += file.after_cut(chance, 1) != page(b"1")
    assert lost, "a sync after a failed one does not write what that one dropped"


def loses_names(chance):
    """A new file may be missing until its folder was synced, although its content was."""
    for is_synced in (False, True):
        survivals = 0
        for _ in range(DRAWS):
            disk = Disk(FOLDER, chance)
            disk.apply("C", f"{FOLDER}/new", 0, b"")
            disk.apply("W", f"{FOLDER}/new", 0, page(b"1"))
            disk.apply("S", f"{FOLDER}/new", 0, b"")
            if is_synced:
                disk.apply("S", f"{FOLDER}", 0, b"")
            survivals += f"{FOLDER}/new" in disk.surviving_names()
        if is_synced:
            assert survivals == DRAWS, "a name survives once its folder is synced"
        else:
            assert 0 < survivals < DRAWS, "a name may be missing before its folder is synced"
