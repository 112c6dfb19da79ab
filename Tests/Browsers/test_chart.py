"""The Helm chart: rendered for several ways to run it, each document says what Kubernetes wants, and names what there is."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from drivers.patience import patient
from server import ROOT, binary

CHART = ROOT / "Tools/package.d/helm"
RENDER = Path(__file__).parent / "helm" / "render.go"


@pytest.fixture(scope="module")
def render(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("go"):
        pytest.skip("golang-go is not installed")
    program = tmp_path_factory.mktemp("helm") / "render"
    built = subprocess.run(
        ["go", "build", "-o", program, RENDER], capture_output=True, text=True, timeout=patient(300), check=False,
        env={**os.environ, "GO111MODULE": "off", "GOFLAGS": "-p=2"})
    assert built.returncode == 0, built.stderr
    return program


def documents(render: Path, **changes: Any) -> dict[str, Any]:
    """By their kinds, with these values instead of the usual ones; members of an object by `outer__inner`."""
    values = copy.deepcopy(yaml.safe_load((CHART / "values.yaml").read_text()))
    for name, value in changes.items():
        *outer, last = name.split("__")
        where = values
        for step in outer:
            where = where[step]
        assert last in where, name
        where[last] = value
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    data = {
        "Values": values, "Release": {"Name": "live", "Namespace": "default"},
        "Chart": {"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
    }
    rendered = subprocess.run(
        [render, CHART], input=json.dumps(data), capture_output=True, text=True, timeout=patient(30), check=False)
    assert rendered.returncode == 0, rendered.stderr
    found = [document for document in yaml.safe_load_all(rendered.stdout) if document]
    assert len({document["kind"] for document in found}) == len(found)
    for document in found:
        assert document["apiVersion"] and document["metadata"]["name"] == "live"
    return {document["kind"]: document for document in found}


def check_server(document: dict[str, Any]) -> dict[str, Any]:
    """What holds for each way to run it; returns its container."""
    template = document["spec"]["template"]
    pod = template["spec"]
    assert document["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    [container] = pod["containers"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", [])}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    # Nobody's rights, and nothing to write to but its own.
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness", "startup")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "liveness": "/healthz", "readiness": "/readyz", "startup": "/healthz"}
    assert {probe["port"] for probe in probes.values()} == {"http"}
    media = [port for port in container["ports"] if port.get("hostPort")]
    assert {port["protocol"] for port in media} == {"UDP", "TCP"}
    if pod["hostNetwork"]:
        # Kubernetes refuses others in the node's network.
        assert all(port["containerPort"] == port["hostPort"] for port in media)
    return container


def settings(container: dict[str, Any]) -> dict[str, str]:
    """Of its environment, those that are known here."""
    return {variable["name"]: variable.get("value", "192.0.2.1") for variable in container["env"]}


@pytest.mark.parametrize("changes", [
    {},
    {"hostNetwork": False, "publicAddress": "203.0.113.7", "persistence__enabled": False},
    {"tls__secretName": "tls", "ports__http": 8443, "image__tag": "trial", "persistence__storageClass": "fast"},
    {"ingress__enabled": True, "ingress__className": "nginx", "ingress__tlsSecretName": "tls",
     "trustedProxy": "10.0.0.0/8", "ingress__annotations": {"a/b": "c"}},
    {"configuration": 'key-id = "main"\nviewers = "public"\nmax-hls = 3\n'},
], ids=["usual", "ports", "tls", "ingress", "configuration"])
def test_runs_the_server(render: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    found = documents(render, **changes)
    assert set(found) == {"ConfigMap", "Service", "StatefulSet"} | ({"Ingress"} if "ingress__enabled" in changes else set())
    container = check_server(found["StatefulSet"])
    names = {port["name"] for port in container["ports"]}
    assert {port["targetPort"] for port in found["Service"]["spec"]["ports"]} <= names
    assert found["Service"]["spec"]["selector"].items() <= found["StatefulSet"]["spec"]["template"]["metadata"]["labels"].items()
    # The server understands what it is told, by its file and by its environment.
    file, secret = tmp_path / "rostrum.toml", tmp_path / "secret"
    file.write_text(found["ConfigMap"]["data"]["rostrum.toml"])
    secret.write_text("0123456789abcdef0123456789abcdef\n")
    secret.chmod(0o600)
    told = settings(container)
    told["ROSTRUM_SECRET_FILE"] = str(secret)
    shown = subprocess.run(
        [binary(), "config", "show", "--config", file], capture_output=True, text=True, check=False,
        timeout=patient(30), env={**os.environ, **told})
    assert shown.returncode == 0, shown.stderr
    for name in told:
        setting = name.removeprefix("ROSTRUM_").lower().replace("_", "-")
        assert re.search(rf"^{setting} = .* # {name}$", shown.stdout, re.MULTILINE), f"{name}\n{shown.stdout}"


def test_names_the_version_of_the_server(render: Path) -> None:
    version = subprocess.run([binary(), "--version"], capture_output=True, text=True, check=True).stdout
    image = documents(render)["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image.split(":")[1] == re.search(r"\d+\.\d+\.\d+", version)[0]
