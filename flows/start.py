"""What every stage flow does first: pin its inputs, so that `latest` means one thing all along."""

from tasks.logger import say
from tasks.references import resolve


def pin(kind: str, reference: str) -> tuple[str, str]:
    """Return kind and exact reference of an input; `latest` or a prefix becomes a key.

    A path stays a path. What was meant is logged.
    """
    artifact = resolve(kind, reference)
    exact = str(artifact.path.resolve()) if artifact.manifest is None else artifact.key
    if exact != reference:
        say(f"{kind} {reference!r} is {artifact.reference}")
    return kind, exact
