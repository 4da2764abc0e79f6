"""Which identity a credential proves: digest and address, as Apache's servers offer them."""

from __future__ import annotations

import base64
import hashlib

from watchkeeper.model.wire.requests import Auth
from watchkeeper.model.zookeeper.java_hash_order import string_hash

Identity = tuple[str, str]
BUCKETS = 16


def identity_of(request: Auth, host: str) -> Identity | None:
    """The identity that a request proves; None for an unknown scheme or a bad credential."""
    if request.scheme == "ip":
        return ("ip", host)
    if request.scheme != "digest" or request.credential is None:
        return None
    credential = request.credential.decode("utf-8", "replace")
    return ("digest", digest_of(credential))


def digest_of(credential: str) -> str:
    """The identity for `user:password`: the user, and the digest of both."""
    user = credential.split(":", 1)[0]
    digest = hashlib.sha1(credential.encode(), usedforsecurity=False).digest()
    return f"{user}:{base64.b64encode(digest).decode()}"


def shown(identities: tuple[Identity, ...]) -> tuple[Identity, ...]:
    """The identities as a client may see them: without digests, in the order of Java's table."""
    return tuple(
        (scheme, name.split(":", 1)[0] if scheme == "digest" else name)
        for scheme, name in sorted(identities, key=_bucket)
    )


def _bucket(identity: Identity) -> int:
    """The place of an identity in a new `ConcurrentHashMap`, as its class computes a hash."""
    scheme, name = map(string_hash, identity)
    value = (37 * (37 * 17 + scheme) + name) & 0xFFFFFFFF
    return (value ^ value >> 16) & (BUCKETS - 1)
