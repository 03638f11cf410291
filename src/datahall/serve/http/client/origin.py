"""Where another server is: scheme, host and port, from configuration only."""

from __future__ import annotations

import socket
import unicodedata
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

import msgspec

from datahall.errors import ScenarioError

CREDENTIALS = IPv6Address("fd00:ec2::254")  # that AWS has in place of a link-local one


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
        if any(letter <= " " or letter == "\x7f" for letter in url):
            raise ScenarioError(f"{url!r} has a blank or a line break in it", hint=problem)
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


def is_of_machine(host: str) -> bool:
    """Whether an address, however it is spelled, is of the link that a machine is on, where clouds keep credentials.

    >>> is_of_machine("2852039166"), is_of_machine("::ffff:169.254.169.254"), is_of_machine("10.0.0.7")
    (True, True, False)
    """
    address = _address(
        unicodedata.normalize("NFKC", host).replace("\u3002", ".").rstrip(".").partition("%")[0]
    )
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return address is not None and (address.is_link_local or address == CREDENTIALS)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """As a resolver reads it, which takes numbers of one to four parts, in octal and hexadecimal too; else nothing."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):  # a name
        return None
