"""The real Apache Fluss, started and stopped from Python: for tests, for `./dev real`, for users.

This package gets the published jar, runs it on the Java of this machine, and leaves nothing behind.
It speaks the protocol only to ask whether a server is ready. The embedded server is the package
`fluss_server`; neither imports the other.

==================  ===========================================================================
`java_cluster`      `JavaCluster`: start, stop, kill, pause and restart servers
`real_server`       the same for `fluss_server.LocalCluster(kind="real")`
`cluster_profiles`  shapes of a cluster: small segments, fast snapshots, three replicated servers
`cluster_keeper`    a cluster that outlives the command which started it, or is shared by processes
`java_config`       the files that Fluss reads
`server_process`    one server process, its log, and what ends it with its parent
`readiness`         whether the servers are ready, asked in their own protocol
`workspace`         data directories: fresh ones that vanish, kept ones that are locked
`artifact`          the jars; `java_runtime`: the Java; `ports`, `file_locks`, `cache_paths`
==================  ===========================================================================
"""

import sys

from fluss.errors import MissingRuntimeError

if sys.platform == "win32":
    raise MissingRuntimeError(
        "a real Fluss can be started from here on Linux and macOS only.",
        hint="start it in WSL or in a container, and connect to its address.",
    )
