"""Environment that must stand before Prefect is imported: quiet, patient, and no telemetry."""

import os

_DEFAULTS = {
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "DO_NOT_TRACK": "1",
}
"""The first start of Prefect's own server takes longer than its default patience of 20 s."""


def prepare_environment() -> None:
    """Set what is not set already; the command line shows its own lines instead of Prefect's."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
