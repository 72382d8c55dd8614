"""A child that does not outlive its parent, whatever ends the parent."""

import ctypes
import os
import signal
import sys

PARENT = "DTCA_PARENT"
"""Environment variable: the process that the next one is to die with."""
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends; for Linux, elsewhere nothing.

    The request survives `exec`, so a launcher can make it for the program it becomes. A process
    takes a while to come here; who its parent was at the start is in its environment.
    """
    if sys.platform != "linux":
        return
    parent = int(os.environ.get(PARENT, os.getppid()))
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent ended before the kernel knew.
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    die_with_parent()
    os.environ[PARENT] = str(os.getpid())
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
