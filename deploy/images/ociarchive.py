"""One root file system as an OCI image layout in a tar file, which container engines import as it is.

Source: image-spec (image-layout.md, manifest.md, config.md) of opencontainers.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

_MEDIA = "application/vnd.oci.image"


def write(target: Path, root: Path, config: dict[str, Any], name: str, arch: str) -> None:
    """`name` is PROGRAM:VERSION; one layer, whose bytes depend on the files' content, modes and names alone."""
    layer = layer_of(root)
    packed = _packed(layer)
    about = {
        "architecture": arch,
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    blobs: dict[str, bytes] = {}
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}.manifest.v1+json",
        "config": _blob(blobs, f"{_MEDIA}.config.v1+json", _json(about)),
        "layers": [_blob(blobs, f"{_MEDIA}.layer.v1.tar+gzip", packed)],
    }
    described = _blob(blobs, f"{_MEDIA}.manifest.v1+json", _json(manifest))
    # The first is what `podman load` names the image by, the second what containerd does.
    tag, full = name.rpartition(":")[2], f"docker.io/library/sublet-{name}"
    described["annotations"] = {"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": full}
    index = {"schemaVersion": 2, "mediaType": f"{_MEDIA}.index.v1+json", "manifests": [described]}
    files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index), **blobs}
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in sorted(files.items()):
            _add(archive, path, content)


def layer_of(root: Path) -> bytes:
    """An uncompressed tar: sorted, owned by root, times as the files have them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            entry = archive.gettarinfo(path, str(path.relative_to(root)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = int(os.lstat(path).st_mtime)
            if entry.isreg():
                with path.open("rb") as content:
                    archive.addfile(entry, content)
            else:
                archive.addfile(entry)
    return buffer.getvalue()


def _packed(data: bytes) -> bytes:
    return gzip.compress(data, compresslevel=6, mtime=0)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _blob(blobs: dict[str, bytes], media_type: str, content: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    blobs[f"blobs/sha256/{digest}"] = content
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def _add(archive: tarfile.TarFile, path: str, content: bytes) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode, entry.mtime = len(content), 0o644, 0
    archive.addfile(entry, io.BytesIO(content))
