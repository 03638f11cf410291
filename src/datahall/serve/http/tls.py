"""TLS of both sides: version 1.2 at least, HTTP/1.1 alone, certificates always checked."""

from __future__ import annotations

import ssl

from datahall.errors import ScenarioError


def server_tls(certificate: str, key: str) -> ssl.SSLContext:
    """What a server shows, from two files in PEM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ScenarioError(
            f"the certificate {certificate} with the key {key} cannot be used: {error.strerror or error}"
        ) from None
    return context


def client_tls(authorities: str = "") -> ssl.SSLContext:
    """What a client trusts: the system's authorities, or those of a file in PEM."""
    try:
        context = ssl.create_default_context(cafile=authorities or None)
    except (OSError, ssl.SSLError) as error:
        raise ScenarioError(f"{authorities} has no authorities in PEM: {error.strerror or error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
