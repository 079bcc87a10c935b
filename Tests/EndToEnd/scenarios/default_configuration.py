"""On an installed machine commands find the configuration, root becomes the service's user, and every path exists."""

import json
import os
import pathlib
import re
import subprocess
import time

from expectations import wait_for
from harness import ROOT, Skipped, import_line
from installed import CONFIGURATION, DOCUMENTS, EXTRA, JANE, SERVICE, Installed
from links import check_links

STORE = "sqlite"
KEYS = "/etc/refresh-worker/keys"
NOTE = f"refresh-worker: runs as user refresh-worker with the settings of {CONFIGURATION} (--no-switch: as root)\n"


def scenario(fixture):
    if os.geteuid() != 0:
        raise Skipped("only root can make the machine")
    machine = Installed(fixture)
    first_start(machine)
    hidden_database(machine)
    import_as_root(machine, fixture)
    commands_of_root(machine)
    owner_trap(machine)
    other_users(machine)
    names = printed_paths(machine, fixture)
    service(machine)
    documents = machine.path(DOCUMENTS.replace("/usr/local", "/local"))
    assert (documents / "README.md").exists(), "the map is installed"
    return f"{names} printed paths and {check_links(documents)} links exist"


def first_start(machine):
    """The unit, as systemd starts it, without a key ring; then the steps that the package prints."""
    refused = machine.run("--config", CONFIGURATION, user="refresh-worker", expect=78)
    assert "this is a first start" in refused.stderr and "copy" not in refused.stderr, refused.stderr
    assert len(refused.stderr.splitlines()) == 1, "a unit that names its file prints nothing else"
    script = ROOT / "deploy" / "debian" / "postinst"
    steps = re.findall(r"^ \d\. .*$", (ROOT / "deploy" / "debian" / "README.Debian").read_text(), re.MULTILINE)
    printed = subprocess.run(["sh", script, "configure", ""], capture_output=True, text=True, check=True).stdout
    assert len(steps) == 4 and all(step in printed for step in steps), f"the last lines are the steps: {printed}"
    upgraded = subprocess.run(["sh", script, "configure", "0.0.9"], capture_output=True, text=True, check=True).stdout
    assert upgraded == "", "an upgrade does not repeat them"
    made = machine.run("keys", "generate")
    assert made.stderr == NOTE, "root's command says once what it is"
    status = machine.path("/etc/refresh-worker/keys").stat()
    assert (status.st_uid, status.st_mode & 0o777) == (SERVICE, 0o600), "the key ring belongs to the service's user"
    machine.run("doctor")


def hidden_database(machine):
    """The address that systemd passes to the service is missing while that is down."""
    address = "postgres://u@db/g?host=/nonexistent"
    machine.write("/etc/credstore/refresh-worker.database-url", address)
    machine.path("/etc/credstore/refresh-worker.database-url").chmod(0o600)
    machine.run("keys", "generate", "--key-file", "/var/lib/refresh-worker/other")
    found = machine.run("doctor", expect=78)
    assert "REFRESH_WORKER_DATABASE=" in found.stderr, f"the error says what to do: {found}"
    found = machine.run("doctor", expect=78, REFRESH_WORKER_DATABASE=address)
    assert "/nonexistent" in found.stdout, f"that works: {found}"
    for name in ("/etc/credstore/refresh-worker.database-url", "/var/lib/refresh-worker/other"):
        machine.path(name).unlink()


def import_as_root(machine, fixture):
    grants = fixture.sandbox.create(3)
    lines = "".join(json.dumps(import_line(grant)) + "\n" for grant in grants)
    # The whole configuration counts: the client id is only there.
    machine.run("grants", "import", "-", stdin=lines)
    assert len(machine.run("grants", "list", "--json").stdout.splitlines()) == 3, "the grants are stored"
    machine.run("backup", "/var/lib/refresh-worker/backup.sqlite")
    refused = machine.run("--config", CONFIGURATION, "backup", "/var/backup.sqlite", expect=73).stderr
    assert "user refresh-worker cannot write in /var" in refused, f"it names the user that root became: {refused}"
    machine.run("--run-once")
    assert machine.owners() == {SERVICE}, "everything that root's commands have made belongs to the service's user"
    os.chown(machine.path("/var/lib/refresh-worker"), 0, SERVICE)
    machine.path("/var/lib/refresh-worker").chmod(0o750)
    found = machine.run("doctor", expect=78).stdout
    assert "where SQLite keeps its log, cannot be written" in found, "the doctor finds what the service may not do"
    machine.path("/var/lib/refresh-worker").chmod(0o700)
    os.chown(machine.path("/var/lib/refresh-worker"), SERVICE, SERVICE)


def commands_of_root(machine):
    """A command that runs has given up root for good; --no-switch and another file let root stay root."""
    watch = machine.start("status", "--watch")
    watch.stdout.readline()
    try:
        state = dict(re.findall(r"^(\w+):\t(.*)$", pathlib.Path(f"/proc/{watch.pid}/status").read_text(), re.MULTILINE))
        assert state["Uid"].split() == [str(SERVICE)] * 4, "real, effective, saved and file user are the service's"
        assert state["Gid"].split() == [str(SERVICE)] * 4, "so are the groups"
        assert sorted(map(int, state["Groups"].split())) == [SERVICE, EXTRA], "root's further groups are given up"
        assert int(state["CapPrm"], 16) == int(state["CapEff"], 16) == 0, "no capability is left"
        # Root owns these files of a process that may not be dumped, and its user's other processes cannot read them.
        assert pathlib.Path(f"/proc/{watch.pid}/environ").stat().st_uid == 0, "the environment is closed to the service"
    finally:
        watch.kill()
        watch.communicate(timeout=60)
    stays = machine.run("keys", "list", "--no-switch", expect=78).stderr
    assert f"the settings are those of {CONFIGURATION}" in stays, "root also learns which file it reads"
    assert "but user root is running" in stays, "root stays root"
    stays_usable(machine)
    own_files_of_root(machine)
    installed_again(machine)
    prefix = ["setpriv", "--bounding-set=-setgid", "--inh-caps=-setgid"]
    refused = machine.run("status", prefix=prefix, expect=78).stderr
    assert "root cannot continue as refresh-worker (initgroups failed" in refused, "a failed switch ends the command"


def installed_again(machine):
    """An installation writes through no link that the service's user has put into its folder."""
    file = machine.path(CONFIGURATION)
    kept = file.read_text()
    file.unlink()
    machine.write("/etc/of-root", "of root")
    # A name that the installation could write to, and the file itself, which leads nowhere.
    file.with_name(file.name + ".new").symlink_to(machine.path("/etc/of-root"))
    machine.install()
    assert machine.path("/etc/of-root").read_text() == "of root", "root's file is as it was"
    assert not file.is_symlink() and "GOOGLE_CLIENT_ID" in file.read_text(), "the configuration is installed"
    file.unlink()
    file.symlink_to(machine.path("/etc/made-by-root"))
    machine.install()
    assert not machine.path("/etc/made-by-root").exists(), "root makes no file where the service's user chose"
    file.unlink()
    file.with_name(file.name + ".new").unlink()
    file.write_text(kept)
    assert not list(file.parent.parent.glob("refresh-worker.*")), "no temporary file is left"


def own_files_of_root(machine):
    """Root decides by the files: its own it uses as root, and those of the service as the service's user."""
    machine.write("/root/own.conf", "REFRESH_WORKER_DATABASE=/root/own.sqlite\nREFRESH_WORKER_KEY_FILE=/root/keys\n")
    for words, variables in [(["--config", "/root/own.conf"], {}), ([], {"REFRESH_WORKER_CONFIG": "/root/own.conf"})]:
        own = machine.run("status", *words, expect=2, **variables).stderr
        assert "/root/own.sqlite" in own and CONFIGURATION not in own, f"root's own file counts: {own}"
        assert "runs as" not in own, "root stays root with its own files"
    machine.write("/etc/other.conf", "GOOGLE_CLIENT_ID=1-a.apps.googleusercontent.com\n")
    made = machine.run("grants", "list", "--config", "/etc/other.conf").stderr
    assert made == NOTE.replace(CONFIGURATION, "/etc/other.conf"), f"the service's database is not root's: {made}"
    machine.run("backup", "--config", "/etc/other.conf", "/var/lib/refresh-worker/other.sqlite")
    assert machine.owners() == {SERVICE}, "root makes nothing of its own among the service's files"
    machine.path("/var/lib/refresh-worker/other.sqlite").unlink()
    machine.write("/root/other.conf", "")
    machine.path("/root").chmod(0o700)
    refused = machine.run("grants", "list", "--config", "/root/other.conf", expect=78).stderr
    assert "root continues as user refresh-worker" in refused and "--no-switch" in refused, refused
    hides_its_configuration(machine)
    passwd = machine.path("/etc/passwd")
    text = passwd.read_text()
    passwd.write_text("\n".join(line for line in text.splitlines() if "refresh-worker" not in line) + "\n")
    refused = machine.run("grants", "list", expect=78).stderr
    assert f"another user than root can change {CONFIGURATION}" in refused, f"root acts for no other user: {refused}"
    passwd.write_text(text)


def hides_its_configuration(machine):
    """The service's user renames its configuration away and back, and root never goes on as root."""
    file = machine.path(CONFIGURATION)
    aside = file.with_name("aside")
    file.rename(aside)
    # No configuration is there to read, and root still gives up its rights.
    unseen = machine.run("grants", "list").stderr
    assert unseen == "refresh-worker: runs as user refresh-worker (--no-switch: as root)\n", unseen
    aside.rename(file)
    loop = "until [ -e $3 ]; do mv $1 $2; mv $2 $1; done 2>/dev/null\n"
    machine.write("/var/lib/refresh-worker/hides", loop, owner=SERVICE)
    enough = "/var/lib/refresh-worker/enough"
    words = [CONFIGURATION, CONFIGURATION + ".aside", enough]
    hides = machine.start_program("sh", "/var/lib/refresh-worker/hides", *words, user="refresh-worker")
    try:
        for _ in range(40):
            told = machine.run("grants", "list", "--json").stderr
            assert told.startswith("refresh-worker: runs as user refresh-worker"), f"root stayed root: {told}"
    finally:
        # It ends by itself: a killed shell could leave a move that is under way.
        machine.write(enough, "")
        hides.communicate(timeout=60)
    machine.path(enough).unlink()
    other = pathlib.Path(f"{file}.aside")
    if other.exists():
        other.rename(file)
    machine.path("/var/lib/refresh-worker/hides").unlink()


def stays_usable(machine):
    """Root's first command of a boot leaves no file that the worker cannot use."""
    keys = machine.path("/etc/refresh-worker/keys")
    spellings = [["--config", path] for path in (CONFIGURATION[1:], CONFIGURATION.replace("r/", "r//"))]
    for words in [["--no-switch"], *spellings]:
        for path in machine.path("/var/lib/refresh-worker").glob("*-leases-*"):
            path.unlink()
        made = machine.run("grants", "list", *words)
        note = NOTE.replace(CONFIGURATION, words[-1])
        assert words == ["--no-switch"] or made.stderr == note, f"root becomes the service's user: {made.stderr}"
        assert machine.owners() == {SERVICE}, f"the leases belong to the service's user after {words}"
    machine.path("/var/lib/refresh-worker/grants.sqlite.reserve").unlink()
    os.chown(keys, 0, 0)
    machine.run("--run-once", "--no-switch", "--metrics-log", "/root/events")
    refused = machine.run("keys", "list", expect=78).stderr
    advice = f"run as root: chown -h refresh-worker: {KEYS} && chmod 600 {KEYS}"
    assert f"it belongs to root (mode 600): {advice}" in refused, f"the error says who owns the key ring: {refused}"
    passed = "/run/credentials/refresh-worker.service/key-ring"
    machine.write(passed, keys.read_text(), owner=SERVICE)
    machine.path(passed).chmod(0o400)
    assert "seals" in machine.run("keys", "list").stdout, "commands read the key ring that systemd passes"
    assert f"{passed} holds 1 key" in machine.run("doctor").stdout, "the doctor names it"
    machine.path(passed).unlink()
    os.chown(keys, SERVICE, SERVICE)
    assert machine.path("/var/lib/refresh-worker/grants.sqlite.reserve").exists(), "the pass reserves space"
    assert machine.owners() == {SERVICE}, "the reserve belongs to the service's user"


def owner_trap(machine):
    """What root made in the service's folder gets one advice, and the worker starts for whoever follows it."""
    name = "/etc/refresh-worker/services.json"
    machine.write(name, '{"services": []}')
    words = ["services", "handle", "mailer", "alice", "--services-file", name]
    advice = f"run as root: chown -h refresh-worker: {name} && chmod 600 {name}"
    for mode in (0o644, 0o600):
        machine.path(name).chmod(mode)
        refused = machine.run(*words, expect=78).stderr
        assert advice in refused and "root" in refused.split(advice)[0], f"with mode {mode:o}: {refused}"
    machine.shell(advice.removeprefix("run as root: "))
    assert "must have 1 to 1000 services" in machine.run(*words, expect=78).stderr, "the file is read"
    machine.path(name).unlink()


def other_users(machine):
    """A user who cannot read the configuration never gets a judgement of the defaults."""
    refused = machine.run("status", user="jane", expect=78, HOME="/home/jane").stderr
    assert CONFIGURATION in refused and "run this as root" in refused, f"the file is named: {refused}"
    own = "/home/jane/.config/refresh-worker/refresh-worker.conf"
    machine.write(own, "REFRESH_WORKER_DATABASE=/home/jane/own.sqlite\n", owner=JANE)
    read = machine.run("status", user="jane", expect=2, HOME="/home/jane").stderr
    assert f"the settings are those of {own}" in read and "/home/jane/own.sqlite" in read, f"jane's file counts: {read}"
    # Root does not follow the file of a user whose HOME it has kept.
    assert machine.run("keys", "list", HOME="/home/jane").stderr == NOTE, "root's file is that of the installation"


def printed_paths(machine, fixture):
    """Every document that help, reports and errors name is there."""
    # A concern, so that the status names the runbook.
    fixture.database = machine.path("/var/lib/refresh-worker/grants.sqlite")
    fixture.set_due(int(time.time() * 1000) - 600_000)
    texts = [machine.run("status", expect=3).stdout, machine.run("status", "--json", expect=3).stdout]
    texts += [machine.run("doctor").stdout, machine.run("doctor", "--json").stdout]
    for words in [[], ["status"], ["store", "copy"], ["services", "handle"]]:
        texts.append(machine.run(*words, "--help").stdout)
    texts += [machine.path(f"/local/share/man/{page}").read_text().replace("\\-", "-")
              for page in ("man1/refresh-worker.1", "man5/refresh-worker.conf.5")]
    keys = machine.path("/etc/refresh-worker/keys")
    keys.rename(keys.with_name("aside"))
    texts.append(machine.run("keys", "generate", expect=73).stderr)
    keys.with_name("aside").rename(keys)
    for text in texts:
        assert not re.search(r"(?<![\w/])docs/", text), f"no path of the sources is printed: {text}"
    names = {name for text in texts for name in re.findall(rf"{DOCUMENTS}/[\w/-]+\.\w+", text)}
    assert any(name.endswith("runbook.md") for name in names), "reports name the runbook"
    for name in names:
        assert machine.path(name.replace("/usr/local", "/local")).exists(), f"{name} is installed"
    return len(names)


def service(machine):
    """The service itself, started with its own user and the file's name, is as it was."""
    worker = machine.start("--config", CONFIGURATION, user="refresh-worker")
    try:
        assert "started" in worker.stderr.readline(), "its first line is that it has started"
        wait_for(lambda: json.loads(machine.run("status", "--json").stdout)["verdict"] == "ok", 60, "all is well")
    finally:
        worker.terminate()
        worker.communicate(timeout=60)
    assert worker.returncode == 0, "it stops"
