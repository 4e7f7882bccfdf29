# SPDX-License-Identifier: MIT
"""image.py ARCHIVE ARCHITECTURE ROOT: the archive is an image for that architecture as `docker load` and as OCI tools read it:
every digest and size in it is that of the content. Unpacks its layer into the folder ROOT."""
import hashlib
import io
import json
import sys
import tarfile

archive = tarfile.open(sys.argv[1])


def read(name):
    return archive.extractfile(name).read()


def blob(entry):
    content = read("blobs/sha256/" + entry["digest"].removeprefix("sha256:"))
    assert entry["digest"] == "sha256:" + hashlib.sha256(content).hexdigest(), entry
    assert entry["size"] == len(content), entry
    return content


assert json.loads(read("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
manifest = json.loads(blob(json.loads(read("index.json"))["manifests"][0]))
config = json.loads(blob(manifest["config"]))
layer = blob(manifest["layers"][0])
assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]], config
docker = json.loads(read("manifest.json"))[0]
assert docker["Config"].endswith(manifest["config"]["digest"][7:]), docker
assert docker["Layers"][0].endswith(manifest["layers"][0]["digest"][7:]), docker
assert config["architecture"] == sys.argv[2], config
assert config["config"]["Entrypoint"] == ["/usr/bin/clrsnap"], config
files = tarfile.open(fileobj=io.BytesIO(layer))
assert all(f.uid == 0 and f.gid == 0 and not f.name.startswith("/") for f in files), files.getnames()
files.extractall(sys.argv[3])
