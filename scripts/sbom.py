# SPDX-License-Identifier: MIT
"""Prints an SPDX document of lines NAME|VERSION|LICENCE on stdin, the first of which contains the others."""
import datetime
import hashlib
import json
import os
import sys

rows = [line.strip().split("|") for line in sys.stdin if line.strip()]
main = rows[0][0]
when = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
digest = hashlib.sha256(repr(rows).encode()).hexdigest()


def ref(name):
    return "SPDXRef-" + name


document = {
    "spdxVersion": "SPDX-2.3",
    "dataLicense": "CC0-1.0",
    "SPDXID": "SPDXRef-DOCUMENT",
    "name": f"{main}-{rows[0][1]}",
    "documentNamespace": f"https://spdx.org/spdxdocs/{main}-{rows[0][1]}-{digest}",
    "creationInfo": {"created": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": [f"Tool: {main}-package"]},
    "packages": [{"name": name, "SPDXID": ref(name), "versionInfo": version, "downloadLocation": "NOASSERTION",
                  "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
                  "copyrightText": "NOASSERTION"} for name, version, licence in rows],
    "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": ref(main)}]
    + [{"spdxElementId": ref(name), "relationshipType": "STATIC_LINK", "relatedSpdxElement": ref(main)} for name, _, _ in rows[1:]],
}
json.dump(document, sys.stdout, indent=1)
print()
