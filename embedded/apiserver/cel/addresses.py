"""IP addresses, networks and URLs in CEL: `cidr("10.0.0.0/8").containsIP(self.clusterIP)`.

https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-ip-address-library
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from embedded.apiserver.cel.functions import Function
from embedded.apiserver.cel.messages import CIDR, IP, URL


def _address(text: str) -> IPv4Address | IPv6Address:
    found = ip_address(text) if "%" not in text else None
    if found is None:
        raise ValueError(f'IP Address "{text}" with zone value is not allowed')
    if isinstance(found, IPv6Address) and found.ipv4_mapped:
        raise ValueError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return found


def _network(text: str) -> IPv4Network | IPv6Network:
    """The network an address with a prefix length is in."""
    address, slash, length = text.partition("/")
    if not slash or not length.isdecimal():
        raise ValueError(f'network address parse error during conversion from string: "{text}"')
    return ip_network((str(_address(address)), int(length)), strict=False)


def _url(text: str) -> SplitResult:
    """As Go's ParseRequestURI takes it: absolute, or a path from the root."""
    parts = urlsplit(text)
    _ = parts.port  # raises what is wrong with it
    if not (parts.scheme or text.startswith("/")):
        raise ValueError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return parts


def _holds(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    """Whether a text can be parsed."""

    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _made(parse: Callable[[str], Any], kind: Any) -> Callable[[str], Any]:
    def make(text: str) -> Any:
        parse(text)
        return kind(text=text)

    return make


def _of_address(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda found: read(_address(found.text))


def _of_url(read: Callable[[SplitResult], Any]) -> Callable[[Any], Any]:
    return lambda found: read(_url(found.text))


def _in_network(network: Any, address: Any) -> bool:
    return _address(address if isinstance(address, str) else address.text) in _network(network.text)


def _within(network: Any, other: Any) -> bool:
    outer, inner = _network(network.text), _network(other if isinstance(other, str) else other.text)
    return isinstance(inner, type(outer)) and inner.subnet_of(outer)  # type: ignore[arg-type]


def _masked(network: Any) -> Any:
    return CIDR(text=str(_network(network.text)))


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    """Go's IsGlobalUnicast, to which private addresses are global too."""
    apart = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not apart and str(address) != "255.255.255.255"


def _is_link_local_multicast(address: IPv4Address | IPv6Address) -> bool:
    return address in ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")


def _hostname(parts: SplitResult) -> str:
    return parts.hostname or ""


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


FUNCTIONS = (
    Function("ip", ("string",), "IP", _made(_address, IP), member=False),
    Function("isIP", ("string",), "bool", _holds(_address), member=False),
    Function("ip.isCanonical", ("string",), "bool", lambda text: str(_address(text)) == text, member=False),
    Function("family", ("IP",), "int", _of_address(lambda found: found.version)),
    Function("isUnspecified", ("IP",), "bool", _of_address(lambda found: found.is_unspecified)),
    Function("isLoopback", ("IP",), "bool", _of_address(lambda found: found.is_loopback)),
    Function("isLinkLocalMulticast", ("IP",), "bool", _of_address(_is_link_local_multicast)),
    Function("isLinkLocalUnicast", ("IP",), "bool", _of_address(lambda found: found.is_link_local)),
    Function("isGlobalUnicast", ("IP",), "bool", _of_address(_is_global)),
    Function("cidr", ("string",), "CIDR", _made(_network, CIDR), member=False),
    Function("isCIDR", ("string",), "bool", _holds(_network), member=False),
    Function("containsIP", ("CIDR", "string"), "bool", _in_network),
    Function("containsIP", ("CIDR", "IP"), "bool", _in_network),
    Function("containsCIDR", ("CIDR", "string"), "bool", _within),
    Function("containsCIDR", ("CIDR", "CIDR"), "bool", _within),
    Function("ip", ("CIDR",), "IP", lambda found: IP(text=found.text.partition("/")[0])),
    Function("masked", ("CIDR",), "CIDR", _masked),
    Function("prefixLength", ("CIDR",), "int", lambda found: _network(found.text).prefixlen),
    Function("url", ("string",), "URL", _made(_url, URL), member=False),
    Function("isURL", ("string",), "bool", _holds(_url), member=False),
    Function("getScheme", ("URL",), "string", _of_url(lambda parts: parts.scheme)),
    Function("getHost", ("URL",), "string", _of_url(_host)),
    Function("getHostname", ("URL",), "string", _of_url(_hostname)),
    Function("getPort", ("URL",), "string", _of_url(lambda parts: str(parts.port or ""))),
    Function("getEscapedPath", ("URL",), "string", _of_url(lambda parts: parts.path)),
    Function("getQuery", ("URL",), "dyn", _of_url(lambda parts: parse_qs(parts.query, keep_blank_values=True))),
)
