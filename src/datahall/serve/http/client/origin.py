"""Where another server is: scheme, host and port, from configuration only."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from datahall.errors import ScenarioError


class Origin(msgspec.Struct, frozen=True):
    """A server, and the path below which it answers."""

    host: str
    port: int
    is_tls: bool = False
    base: str = ""  # path before every path, without a slash at its end
    socket: str = ""  # a Unix socket in place of host and port

    @property
    def authority(self) -> str:
        """What the header Host says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_tls else 80) else f"{host}:{self.port}"

    @classmethod
    def of(cls, url: str) -> Origin:
        """Read a base URL.

        >>> Origin.of("https://api.example.com/v1/").base
        '/v1'
        >>> Origin.of("http://10.0.0.7:8000").authority
        '10.0.0.7:8000'
        """
        problem = "a base URL is http://host:port/path, https://host/path or unix:/path/of.socket"
        if url.startswith("unix:/"):
            return cls(host="localhost", port=80, socket=url.removeprefix("unix:"))
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ScenarioError(f'"{url}" cannot be read: {error}', hint=problem) from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ScenarioError(f'"{url}" is no base URL', hint=problem)
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ScenarioError(f"a base URL has no user, query or fragment: {parts.hostname}", hint=problem)
        is_tls = parts.scheme == "https"
        return cls(parts.hostname, port or (443 if is_tls else 80), is_tls, parts.path.rstrip("/"))
