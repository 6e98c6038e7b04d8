"""The options of a file system of fsspec, from the token of a cluster and the user's own options.

A token is JSON with an access key, its secret and a session token; facts about the store come
beside it under the names of Hadoop (`fs.s3a.endpoint`, `fs.s3a.path.style.access`). Nothing here is
logged or shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from fluss.errors import unusable_answer

S3_SCHEMES: Final = frozenset({"s3", "s3a"})
OSS_SCHEMES: Final = frozenset({"oss"})
# With one of these, the user has credentials of their own.
CREDENTIAL_OPTIONS: Final = frozenset({"anon", "key", "profile", "secret", "token"})


def storage_options(
    scheme: str,
    token: bytes,
    facts: Mapping[str, str],
    own: Mapping[str, Any],
    *,
    uses_token: bool,
) -> dict[str, Any]:
    """Return the options for the file system of a scheme.

    Args:
        scheme: The scheme of the file's URL.
        token: The cluster's token; empty if it has none.
        facts: The properties that came with the token.
        own: The user's options; they replace those of the cluster.
        uses_token: Whether the credentials of the token are used.

    Raises:
        ProtocolError: The token cannot be read.
    """
    options = _of_store(scheme, facts, has_own_endpoint="endpoint_url" in own)
    if uses_token and token:
        options |= _credentials(token)
    return _merged(options, own)


def range_arguments(scheme: str, start: int, size: int) -> dict[str, Any]:
    """Return the arguments of `cat_file` for a range of bytes.

    The file system for OSS takes `end` for the last byte, not for the one after it. And OSS answers
    a range that goes beyond the end of a file with the whole file, unless it is asked not to.
    """
    if scheme in OSS_SCHEMES:
        headers = {"x-oss-range-behavior": "standard"}
        return {"start": start, "end": start + size - 1, "headers": headers}
    return {"start": start, "end": start + size}


def _credentials(token: bytes) -> dict[str, Any]:
    try:
        parts = json.loads(token)
    except ValueError:
        parts = None
    if not isinstance(parts, dict):
        # Raised outside of the handler, because the parser's own error would carry the token along.
        raise unusable_answer("GET_FILESYSTEM_SECURITY_TOKEN", "the token is no JSON object")
    options = {
        "key": parts.get("access_key_id"),
        "secret": parts.get("access_key_secret"),
        "token": parts.get("security_token"),
    }
    return {key: value for key, value in options.items() if value is not None}


def _of_store(scheme: str, facts: Mapping[str, str], *, has_own_endpoint: bool) -> dict[str, Any]:
    endpoint = _fact(facts, ".endpoint")
    url = f"https://{endpoint}" if endpoint and "://" not in endpoint else endpoint
    if scheme in OSS_SCHEMES:
        return {"endpoint": url} if url else {}
    if scheme not in S3_SCHEMES:
        return {}
    options: dict[str, Any] = {}
    if url:
        options["endpoint_url"] = url
    region = _fact(facts, ".region")
    if region:
        options["client_kwargs"] = {"region_name": region}
    is_path_style = _fact(facts, ".path.style.access").lower() == "true"
    if is_path_style:
        options["config_kwargs"] = {"s3": {"addressing_style": "path"}}
    elif url and not has_own_endpoint:
        # As the servers address it; for an endpoint by name, botocore would use the path.
        options["config_kwargs"] = {"s3": {"addressing_style": "virtual"}}
    return options


def _fact(facts: Mapping[str, str], ending: str) -> str:
    return next((value for key, value in facts.items() if key.endswith(ending)), "")


def _merged(options: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Replace options by the user's own, also within those that are mappings themselves."""
    merged = dict(options)
    for key, value in own.items():
        before = merged.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[key] = _merged(before, value)
        else:
            merged[key] = value
    return merged
