"""Starts and stops the real Apache Fluss from Python: for tests, for `./dev real`, for users.

This package fetches the published jar, runs it with the Java of this machine, and leaves no
processes or files behind. It uses the protocol only to ask whether a server is ready. The embedded
server is the package `fluss_server`; neither imports the other.

==================  ===========================================================================
`java_cluster`      `JavaCluster`: start, stop, kill, pause and restart servers
`real_server`       the same for `fluss_server.LocalCluster(kind="real")`
`cluster_profiles`  shapes of a cluster: small segments, fast snapshots, three replicated servers
`cluster_keeper`    a cluster that outlives its command, or that processes share
`java_config`       the configuration files of Fluss
`server_process`    one server process and its log; it stops when its parent ends
`readiness`         asks the servers, in their protocol, whether they are ready
`workspace`         data directories: temporary ones, and kept ones that are locked
`artifact`          the jars; `java_runtime`: the Java; `ports`, `file_locks`, `cache_paths`
==================  ===========================================================================
"""

import sys

from fluss.errors import MissingRuntimeError

if sys.platform == "win32":
    raise MissingRuntimeError(
        "fluss-testkit starts a real Fluss on Linux and macOS only.",
        hint="start it in WSL or in a container, and connect to its address.",
    )
