"""The key pair with which an API server signs service-account tokens."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


def write_key_pair(private: Path, public: Path) -> None:
    """Make an RSA key and write both halves as PEM, the private one readable by us alone."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private.touch(mode=0o600)
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
