# SPDX-License-Identifier: MIT
"""image.py ROOT OUT VERSION ARCHITECTURE: writes the folder ROOT as a container image of one layer, an archive that `docker load` and
`podman load` read, and that is an OCI layout as well. Its bytes depend on the files and on SOURCE_DATE_EPOCH only."""
import datetime
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile

root, out, version, architecture = sys.argv[1:]
epoch = int(os.environ["SOURCE_DATE_EPOCH"])
when = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def owned(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = epoch
    return entry


def archive(add):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        add(tar)
    return buffer.getvalue()


def add_root(tar):
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files + folders):
            path = os.path.join(folder, name)
            tar.add(path, os.path.relpath(path, root), recursive=False, filter=owned)


blobs = {}


def blob(content, kind):
    digest = hashlib.sha256(content).hexdigest()
    blobs["blobs/sha256/" + digest] = content
    return {"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + digest, "size": len(content)}


def text(value):
    return json.dumps(value, sort_keys=True).encode()


layer = blob(archive(add_root), "layer.v1.tar")
config = blob(text({
    "architecture": architecture,
    "os": "linux",
    "created": when,
    "config": {"Entrypoint": ["/usr/bin/clrsnap"], "Env": ["PATH=/usr/bin"], "WorkingDir": "/tmp"},
    "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    "history": [{"created": when, "created_by": "./dev package"}],
}), "config.v1+json")
manifest = blob(text({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
                      "layers": [layer]}), "manifest.v1+json")
names = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": "docker.io/library/clrsnap:" + version}
files = {
    "oci-layout": text({"imageLayoutVersion": "1.0.0"}),
    "index.json": text({"schemaVersion": 2, "manifests": [dict(manifest, annotations=names)]}),
    "manifest.json": text([{"Config": "blobs/sha256/" + config["digest"][7:], "RepoTags": ["clrsnap:" + version],
                            "Layers": ["blobs/sha256/" + layer["digest"][7:]]}]),
    **blobs,
}


def add_files(tar):
    for name in sorted(files):
        entry = owned(tarfile.TarInfo(name))
        entry.size = len(files[name])
        entry.mode = 0o644
        tar.addfile(entry, io.BytesIO(files[name]))


with open(out, "wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=9, mtime=0) as packed:
    packed.write(archive(add_files))
