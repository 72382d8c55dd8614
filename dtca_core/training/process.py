"""A child that does not outlive its parent, whatever ends the parent."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends; for Linux, elsewhere nothing.

    The request survives `exec`, so a launcher can make it for the program it becomes.
    """
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent ended between the two calls, before the kernel knew.
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    die_with_parent()
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
