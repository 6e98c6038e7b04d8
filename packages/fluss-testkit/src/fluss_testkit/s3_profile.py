"""The profile of a cluster whose remote store is S3: remote log segments and KV snapshots.

The servers need Fluss's own file system for S3 as their plugin. They hand temporary credentials to
clients, which they get from a token service (STS): by the role where one is named, else with
GetSessionToken. Servers keep such credentials for a minute.
"""

from __future__ import annotations

from fluss_testkit.artifact import Artifact
from fluss_testkit.cluster_profiles import Profile

FLUSS_FS_S3 = Artifact(
    group="org.apache.fluss",
    name="fluss-fs-s3",
    version="0.9.1-incubating",
    sha256="9d85c2d83daa0ad5a7c3980162e96022154467f378b08333faa9d37beab682e3",
    size_bytes=31_382_851,
)


def s3_store(
    url: str,
    *,
    endpoint: str,
    access_key: str,
    secret_key: str,
    region: str = "us-east-1",
    role: str | None = None,
    path_style: bool = True,
) -> Profile:
    """Return the profile of a cluster that keeps its remote files in S3.

    Args:
        url: Where they are kept, as `s3://bucket/directory`.
        endpoint: The URL of the store, which serves STS, too.
        access_key: The access key of the servers.
        secret_key: Its secret.
        region: The region of the store.
        role: The role whose credentials clients get; None for those of the access key.
        path_style: Whether requests name the bucket in the path; otherwise the host name does.
    """
    options = {
        "remote.data.dir": url,
        "s3.endpoint": endpoint,
        "s3.access-key": access_key,
        "s3.secret-key": secret_key,
        "s3.region": region,
        "s3.path-style-access": str(path_style).lower(),
        "s3.assumed.role.sts.endpoint": endpoint,
    }
    if role is not None:
        options["s3.assumed.role.arn"] = role
    return Profile(options=options, plugins={"s3": (FLUSS_FS_S3,)})
