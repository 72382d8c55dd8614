"""The process in which answers are compared by algebra: `python -m dtca_core.evaluation.worker`.

It answers each JSON message from an inherited socket with one. Algebra may hang or eat memory.
So the process limits its own memory, and a timer that no handler catches ends it, also where
its parent is dead or stopped. `judges` replaces it.
"""

import json
import logging
import resource
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from dtca_core.evaluation.algebra import AlgebraCalculator, AlgebraError
from dtca_core.evaluation.equivalence import agree
from dtca_core.evaluation.judges import OUT_OF_MEMORY
from dtca_core.evaluation.parsing import is_readable
from dtca_core.evaluation.structure import expressions, read_answer


def serve(connection: Connection, seconds: float) -> None:
    """Answer requests until the other side closes; each may take `seconds`."""
    connection.send_bytes(b"ready")
    while True:
        try:
            request = json.loads(connection.recv_bytes())
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, seconds)
        reply = json.dumps(answer(request)).encode()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        connection.send_bytes(reply)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return whether two answers agree, or which expressions of a reference cannot be read."""
    try:
        if "answer" in request:
            pair = request["answer"], request["reference"]
            return {"agree": agree(*pair, AlgebraCalculator())}
        parts = expressions(read_answer(request["reference"]))
        return {"unreadable": [part for part in parts if not is_readable(part)]}
    except AlgebraError as error:
        return {"undecided": str(error)}
    except MemoryError:
        raise
    except Exception:
        return {"bug": traceback.format_exc()}


def main() -> None:
    """Serve the socket whose descriptor is the first argument, within limits."""
    descriptor, seconds, megabytes = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    # math-verify warns that it has no time limit; this process is one.
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20, megabytes * 2**20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        serve(Connection(descriptor), seconds)
    except MemoryError:
        # How much is left is not known; a new worker has all of it.
        sys.exit(OUT_OF_MEMORY)


if __name__ == "__main__":
    main()
