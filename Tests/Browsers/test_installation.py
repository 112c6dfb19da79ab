"""A Debian that has nothing yet: the package is installed, serves a picture, is upgraded and goes, as the README says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import DESKTOP, Browser
from drivers.process import Process
from media import press_go_live, wait_for_frames, wait_for_state
from server import ROOT, binary, free_port
from test_package import make_package

BARE = ROOT / ".build" / "bare-debian.tar"
#: What its root has of the machine's, while a command runs there.
AROUND = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$@"'
AS_ROOT = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]


class Debian:
    """A root of its own, in which commands run on this machine's kernel and network."""

    def __init__(self, root: Path) -> None:
        self.root = root
        subprocess.run([*AS_ROOT, "tar", "-xf", BARE, "-C", root, "--exclude=./dev/*"], check=True)

    def command(self, *command: str, user: str | None = None, has_network: bool = True) -> list[str]:
        """For a process that is to run there, with what root's services get of the environment."""
        account = [f"--userspec={user}:{user}"] if user else []
        apart = ["--mount"] if has_network else ["--mount", "--net"]
        environment = ["/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"]
        return [
            *AS_ROOT, "unshare", *apart, "sh", "-c", AROUND, str(self.root),
            *account, str(self.root), *environment, *command]

    def run(
        self, *command: str, user: str | None = None, has_network: bool = True, statuses: tuple[int, ...] = (0,)
    ) -> str:
        words = self.command(*command, user=user, has_network=has_network)
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode in statuses, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def install(self, package: Path) -> str:
        """As `apt install ./PACKAGE` does; the archives of all that it needs are there, and nothing can be fetched."""
        (self.root / "root" / package.name).write_bytes(package.read_bytes())
        return self.run(
            "apt-get", "-q", "-y", "--no-install-recommends", "install", f"/root/{package.name}", has_network=False)

    def borrow_libraries(self) -> None:
        """Those of a debug build that are in no package: Swift's, from where the compiler is."""
        listing = subprocess.run(["ldd", str(binary())], capture_output=True, text=True, check=True).stdout
        for path in re.findall(r"=> (\S*/swift/\S+\.so\S*)", listing):
            place = self.root / path.removeprefix("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)

    def unit(self, name: str) -> str:
        """What the service's unit says of something."""
        text = (self.root / "lib/systemd/system/rostrum.service").read_text()
        found = re.search(rf"^{name}=(.+)$", text, re.MULTILINE)
        assert found, name
        return found[1]

    def serve(self, log: Path) -> Process:
        """As systemd starts it."""
        return Process(
            self.command(*self.unit("ExecStart").split(), user=self.unit("User")), log, r"^ready http=(\S+)", 30)

    def installed(self) -> dict[str, str]:
        """Versions of all packages."""
        lines = self.run("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n").splitlines()
        return {name: version for status, name, version in map(str.split, lines) if status == "installed"}


@pytest.fixture
def debian(tmp_path: Path) -> Iterator[Debian]:
    can_mount = subprocess.run(
        [*AS_ROOT, "unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)], capture_output=True, text=True)
    if can_mount.returncode != 0:
        pytest.skip(f"cannot mount: {can_mount.stderr.strip()}")
    root = tmp_path / "debian"
    root.mkdir()
    yield Debian(root)
    subprocess.run([*AS_ROOT, "rm", "-rf", "--one-file-system", str(root)], check=True)


def later(package: Path, folder: Path) -> Path:
    """The same as another version, which is newer."""
    subprocess.run(["dpkg-deb", "-R", package, folder / "tree"], check=True)
    control = folder / "tree/DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", "Version: 99.0", control.read_text(), flags=re.MULTILINE))
    upgrade = folder / "rostrum_99.0_amd64.deb"
    subprocess.run(
        ["dpkg-deb", "-Znone", "--root-owner-group", "-b", folder / "tree", upgrade], check=True, capture_output=True)
    return upgrade


def edit(path: Path, values: dict[str, str]) -> None:
    """Gives names their values in a configuration file, whose lines may be examples yet."""
    text = path.read_text()
    for name, value in values.items():
        text, count = re.subn(rf'^(# )?{name} = .*$', f'{name} = "{value}"', text, count=1, flags=re.MULTILINE)
        assert count == 1, f"the file does not name {name}"
    path.write_text(text)


def test_a_bare_debian_becomes_a_server(
    debian: Debian, chromium: Browser, logs: Path, tmp_path: Path
) -> None:
    package = make_package(tmp_path)
    assert "Rostrum is installed. Edit /etc/rostrum/rostrum.toml" in debian.install(package)
    before = debian.installed()
    debian.borrow_libraries()

    port = free_port(width=2)
    configuration = debian.root / "etc/rostrum/rostrum.toml"
    edit(configuration, {"http": f"127.0.0.1:{port}", "udp": f"0.0.0.0:{port + 1}", "transcoder-nice": "0"})
    # Something to improve there always is, such as the clock.
    verdicts = debian.run("rostrum", "doctor", user="rostrum", statuses=(0, 1))
    assert not re.search(r"^fail", verdicts, re.MULTILINE), verdicts
    for subject in ("config", "secret", "http", "udp", "disk", "codecs", "transcoder"):
        assert re.search(rf"^ok +{subject} ", verdicts, re.MULTILINE), verdicts

    log = logs / "installed.log"
    server = debian.serve(log)
    try:
        origin = f"http://{server.ready[1]}"

        def link(role: str) -> str:
            return debian.run(
                "rostrum", "token", "--role", role, "--stream", "talk", "--ttl", "1d", "--link", origin).strip()

        address, _, fragment = link("host").partition("#")
        host = chromium.open(f"{address}?quality=360&fps=15#{fragment}", DESKTOP)
        press_go_live(host)
        viewer = chromium.open(link("viewer"), DESKTOP)
        wait_for_state(viewer, "live")
        wait_for_frames(viewer, 10)
        host.evaluate("() => rostrum.room.edit({title: 'From before'})")
        host.wait_for("() => rostrum.room.info?.title === 'From before'", what="the stream has its title")

        # systemd restarts what it runs; here there is none.
        debian.install(later(package, tmp_path))
        assert debian.installed() == {**before, "rostrum": "99.0"}
        for page in (host, viewer):
            page.evaluate("() => { globalThis.before = rostrum.connection.session; }")
        assert server.stop() == 0
        server = debian.serve(log)
        # The same people by the same secret, data and file, and without doing anything.
        for page in (host, viewer):
            page.wait_for(
                "() => ![null, before].includes(rostrum.connection.session)", seconds=30,
                what="there is another session", about="() => document.body.dataset.state")
        wait_for_state(host, "live", seconds=30)
        wait_for_state(viewer, "live", seconds=30)
        wait_for_frames(viewer, 10)
        other = chromium.open(link("viewer"), DESKTOP)
        other.wait_for("() => rostrum.room.info?.title === 'From before'", what="the stream is what it was")
        wait_for_state(other, "live")
    finally:
        assert server.stop() == 0

    def files() -> set[str]:
        return set(debian.run("find", "/usr", "/etc", "/var/lib", "-path", "*rostrum*", "-not", "-path", "/var/lib/dpkg/*").split())

    debian.run("apt-get", "-q", "-y", "remove", "rostrum")
    # What is of the person's own is there yet.
    assert "rostrum" not in debian.installed()
    assert files() >= {"/etc/rostrum/rostrum.toml", "/etc/rostrum/secret", "/var/lib/rostrum"}
    debian.run("apt-get", "-q", "-y", "purge", "rostrum")
    left = files()
    # What was streamed is nobody's to throw away.
    assert "/var/lib/rostrum" in left and not any(path.startswith(("/usr", "/etc")) for path in left), left
