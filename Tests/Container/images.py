"""Images made of Debian packages, under the names of the images that Containerfile and compose.yaml name.

The registries of the official ones may be out of reach. Each one here has only what the files use of the official one.
"""

import pathlib
import subprocess

from readme import packages_of_readme

HERE = pathlib.Path(__file__).resolve().parent
SUITE = "bookworm"
BASE = "localhost/debian:bookworm-slim"
BUILDER = "localhost/swift:6.2-bookworm"
# The folder of the builder in which the toolchain of this machine is mounted.
TOOLCHAIN = "/opt/swift/usr"
DEBIAN_IMAGES = {
    "postgres": "docker.io/library/postgres:17",
    "prometheus": "docker.io/prom/prometheus:v3.5.0",
    "pause": "registry.k8s.io/pause:3.10",
}


def make_base(engine):
    """A minimal Debian by debootstrap."""
    root = engine.folder / "debian"
    subprocess.run(
        ["debootstrap", "--variant=minbase", SUITE, str(root)], stdout=open(engine.folder / "debootstrap.log", "wb"),
        stderr=subprocess.STDOUT, check=True, timeout=600,
    )
    archive = engine.folder / "debian.tar"
    subprocess.run(["tar", "--create", f"--file={archive}", f"--directory={root}", "."], check=True, timeout=300)
    engine.podman("import", str(archive), BASE, timeout=300)
    archive.unlink()
    subprocess.run(["rm", "--recursive", "--force", "--one-file-system", str(root)], check=True, timeout=300)


def make_builder(engine):
    """The base with the packages that Swift needs; the toolchain is mounted when the image is used."""
    build(
        engine, BUILDER,
        f"""
        FROM {BASE}
        RUN {packages_of_readme()}
        ENV PATH={TOOLCHAIN}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
        """,
    )


def make_debian_images(engine):
    for name, tag in DEBIAN_IMAGES.items():
        engine.podman(
            "build", "--file", str(HERE / f"images/{name}.Containerfile"), "--build-arg", f"BASE={BASE}", "--tag", tag,
            "--network", "host", str(HERE / "images"), timeout=900,
        )


def build(engine, tag, text):
    file = engine.folder / "Containerfile"
    file.write_text("\n".join(line.strip() for line in text.strip().splitlines()) + "\n")
    engine.podman("build", "--file", str(file), "--tag", tag, "--network", "host", str(HERE / "images"), timeout=900)
