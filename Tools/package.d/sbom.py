"""Prints the contents and dependencies of a package as SPDX 2.3 JSON (https://spdx.github.io/spdx-spec/v2.3/)."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

#: Loaded while the program runs, so that it is not linked with them.
LOADED_LATER = ("libwebsockets-evlib-uv", "fonts-dejavu-core")


def installed_version(package: str) -> str:
    """Of a Debian package on this machine, with which the program was built; empty if it is not there."""
    result = subprocess.run(
        ["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True, check=False)
    return result.stdout.strip()


def swift_version() -> str:
    try:
        text = subprocess.run(["swift", "--version"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return "NOASSERTION"
    found = re.search(r"Swift version (\S+)", text)
    return found[1] if found else "NOASSERTION"


def part(name: str, version: str, supplier: str, **more: Any) -> dict[str, Any]:
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
        "name": name,
        "versionInfo": version,
        "supplier": supplier,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        **more,
    }


def debian_part(package: str) -> dict[str, Any]:
    version = installed_version(package) or "NOASSERTION"
    locator = f"pkg:deb/debian/{package}@{version}"
    return part(
        package, version, "Organization: Debian",
        externalRefs=[{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator,
        }])


def document(arguments: argparse.Namespace) -> dict[str, Any]:
    digest = hashlib.sha256(Path(arguments.package).read_bytes()).hexdigest()
    whole = part(
        "rostrum", arguments.version, "NOASSERTION", packageFileName=Path(arguments.package).name,
        checksums=[{"algorithm": "SHA256", "checksumValue": digest}],
        comment=f"commit {arguments.commit}")
    within = [part("swift-runtime", swift_version(), "Organization: Swift.org")]
    names = [re.split(r"[ (|]", name.strip(), maxsplit=1)[0] for name in arguments.libraries.split(",")]
    needed = [debian_part(name) for name in [*filter(None, names), *LOADED_LATER]]
    about = whole["SPDXID"]
    made = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"rostrum-{arguments.version}",
        "documentNamespace": f"https://rostrum.invalid/spdx/{arguments.version}/{digest}",
        "creationInfo": {
            "created": made.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: Tools/package"],
        },
        "packages": [whole, *within, *needed],
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": about},
            *(
                {"spdxElementId": about, "relationshipType": "STATIC_LINK", "relatedSpdxElement": other["SPDXID"]}
                for other in within
            ),
            *(
                {"spdxElementId": about, "relationshipType": "DEPENDS_ON", "relatedSpdxElement": other["SPDXID"]}
                for other in needed
            ),
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("version", "commit", "libraries", "package"):
        parser.add_argument(f"--{name}", required=True)
    print(json.dumps(document(parser.parse_args()), indent=2))


if __name__ == "__main__":
    main()
