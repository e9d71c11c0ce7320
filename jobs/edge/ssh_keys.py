"""Pairs of SSH keys: RSA of 2,048 bits, as Volcano's plugin makes them."""

from __future__ import annotations

_BITS = 2048
_EXPONENT = 65_537


def key_pair() -> dict[str, str]:
    """A new pair: `id_rsa` in PEM, `id_rsa.pub` in OpenSSH's form."""
    # Loaded where a job has such keys, and not with every scheduler.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=_EXPONENT, key_size=_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return {"id_rsa": private.decode(), "id_rsa.pub": public.decode() + "\n"}
