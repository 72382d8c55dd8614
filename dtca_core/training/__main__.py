"""`accelerate launch -m dtca_core.training --config FILE`: events as JSON Lines on stdout."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from dtca_core.errors import DtcaError, RequestError
from dtca_core.training.job import TrainJob
from dtca_core.training.process import die_with_parent


def main() -> int:
    """Run the job of a file and return the exit status: 0, 1 it failed, 2 it cannot be."""
    die_with_parent()
    # Torch takes seconds to import, in which the parent may end.
    from dtca_core.training.loop import Trainer

    parser = argparse.ArgumentParser(prog="dtca_core.training", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="JSON file of a TrainJob")
    job = TrainJob.model_validate_json(parser.parse_args().config.read_bytes())
    try:
        Trainer(job, _emit).run()
    except DtcaError as error:
        refused = isinstance(error, RequestError)
        _emit({"event": "failed", "refused": refused, "message": str(error)})
        return 2 if refused else 1
    return 0


def _emit(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
