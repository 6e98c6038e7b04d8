"""The real Apache Fluss, started and stopped from Python: for tests, for `./dev real`, for users.

This room gets the published jar, runs it on the Java of this machine, and sees to it that nothing
is left behind. It speaks the protocol only to ask whether a server is ready. What a server does
with data is not its business; the embedded server lives elsewhere in this package.

=============  ================================================================================
`cluster`      `JavaCluster`: start, stop, kill, pause and restart servers
`profiles`     shapes of a cluster: small segments, fast snapshots, three replicated servers
`keeper`       a cluster that outlives the command which started it, or is shared by processes
`config`       the files that Fluss reads
`node`         one server process, its log and its leash
`probe`        whether the servers are ready, asked in their own protocol
`workspace`    data directories: fresh ones that vanish, kept ones that are locked
`artifact`     the jars; `runtime`: the Java; `ports`, `locks`, `paths`: what they say
=============  ================================================================================
"""

import sys

from fluss.errors import MissingRuntimeError

if sys.platform == "win32":
    raise MissingRuntimeError(
        "a real Fluss can be started from here on Linux and macOS only.",
        hint="start it in WSL or in a container, and connect to its address.",
    )
