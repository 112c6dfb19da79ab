"""A certificate by ACME, as the README says: Debian's certbot gets and renews it from Pebble, the hook hands it over."""

from __future__ import annotations

import grp
import json
import os
import re
import signal
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from drivers.patience import patient
from drivers.process import Process
from secure_socket import SecureSocket
from server import binary, free_port
from test_operation import make_certificate

HOOK = Path(__file__).parents[2] / "Tools/package.d/certbot-deploy-hook"
NAME = "live.example.org"


@pytest.fixture
def http_port() -> int:
    """Where certbot proves that the name is ours; port 80 in the world."""
    return free_port()


@pytest.fixture
def directory(tmp_path: Path, logs: Path, http_port: int) -> Iterator[str]:
    """The address of an authority, for which every name leads to this machine."""
    folder = tmp_path / "pebble"
    folder.mkdir()
    make_certificate(folder, "localhost")
    names, port = free_port(width=1), free_port(width=2)
    (folder / "pebble.json").write_text(json.dumps({"pebble": {
        "listenAddress": f"127.0.0.1:{port}", "managementListenAddress": f"127.0.0.1:{port + 1}",
        "certificate": str(folder / "chain.pem"), "privateKey": str(folder / "key.pem"), "httpPort": http_port,
        "tlsPort": free_port(), "ocspResponderURL": "", "externalAccountBindingRequired": False}}))
    resolver = Process(
        ["pebble-challtestsrv", "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-dns01", f"127.0.0.1:{names}",
         "-http01", "", "-https01", "", "-tlsalpn01", "", "-management", f"127.0.0.1:{free_port()}"],
        logs / "acme-names.log", r"Starting .*", 15)
    try:
        authority = Process(
            ["pebble", "-config", str(folder / "pebble.json"), "-dnsserver", f"127.0.0.1:{names}"],
            logs / "acme-authority.log", r"ACME directory available", 15,
            {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"})
        try:
            yield f"https://127.0.0.1:{port}/dir"
        finally:
            authority.stop()
    finally:
        resolver.stop()


def serial_number(certificate: bytes) -> str:
    return subprocess.run(
        ["openssl", "x509", "-inform", "DER", "-noout", "-serial", "-ext", "subjectAltName"], input=certificate,
        check=True, capture_output=True).stdout.decode()


def shown_certificate(port: int) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port)))


def test_certbot_gets_a_certificate_and_renews_it_without_dropping_anybody(
    tmp_path: Path, logs: Path, directory: str, http_port: int
) -> None:
    target = tmp_path / "tls"
    environment = {
        **os.environ, "ROSTRUM_TLS": str(target), "ROSTRUM_GROUP": grp.getgrgid(os.getgid()).gr_name}

    def certbot(*arguments: str) -> str:
        places = [part for name in ("config", "work", "logs") for part in (f"--{name}-dir", str(tmp_path / "certbot" / name))]
        done = subprocess.run(
            ["certbot", *arguments, "--non-interactive", "--no-verify-ssl", "--server", directory, *places,
             "--http-01-port", str(http_port), "--http-01-address", "127.0.0.1"],
            env=environment, capture_output=True, text=True, timeout=patient(60))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    certbot(
        "certonly", "--standalone", "-d", NAME, "--agree-tos", "--register-unsafely-without-email",
        "--deploy-hook", str(HOOK))
    assert {path.name: oct(path.stat().st_mode) for path in target.iterdir()} == {
        "fullchain.pem": "0o100640", "privkey.pem": "0o100640"}

    port = free_port(width=2)
    server = Process(
        [str(binary()), "serve", "--dev", "--workers", "1", "--http", f"127.0.0.1:{port}", "--udp", f"127.0.0.1:{port + 1}",
         "--tls-certificate", str(target / "fullchain.pem"), "--tls-key", str(target / "privkey.pem")],
        logs / "acme-server.log", r"^ready http=", 15)
    try:
        first = serial_number(shown_certificate(port))
        assert f"DNS:{NAME}" in first
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with SecureSocket(f"wss://127.0.0.1:{port}/v1/feed/sync", context) as feed:
            feed.receive()
            certbot("renew", "--force-renewal", "--no-random-sleep-on-renew")
            # What systemctl does where systemd runs.
            os.kill(server.pid, signal.SIGHUP)
            server._await(re.compile(r"reloaded"), 30)
            second = serial_number(shown_certificate(port))
            assert f"DNS:{NAME}" in second and second != first
            # The socket of before is open.
            feed.ping()
    finally:
        status = server.stop()
    assert status == 0


def test_the_hook_says_what_it_lacks(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "RENEWED_LINEAGE"}
    done = subprocess.run([HOOK], env=environment, capture_output=True, text=True)
    assert done.returncode != 0 and "certbot sets it to the directory" in done.stderr
    target = tmp_path / "tls"
    lineage = tmp_path / "lineage"
    lineage.mkdir()
    (lineage / "fullchain.pem").write_text("a chain without a key")
    done = subprocess.run(
        [HOOK], capture_output=True, text=True,
        env={**environment, "RENEWED_LINEAGE": str(lineage), "ROSTRUM_TLS": str(target),
             "ROSTRUM_GROUP": grp.getgrgid(os.getgid()).gr_name})
    # Half of a pair takes nobody's place.
    assert done.returncode != 0 and not (target / "fullchain.pem").exists()
