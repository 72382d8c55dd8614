"""What a run says: to the log of its Prefect run, and so to whoever listens to that."""

import logging

from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger

LOGGERS = ("prefect.flow_runs", "prefect.task_runs")
"""Names of the loggers that `say` may speak through."""


def say(message: str) -> None:
    """Log a line in the run that this code is in, or in a plain logger outside of any run."""
    try:
        get_run_logger().info(message)
    except MissingContextError:
        logging.getLogger("dtca").info(message)


def is_said(record: logging.LogRecord) -> bool:
    """Return whether a record comes from `say` and not from Prefect itself."""
    return record.pathname == __file__
