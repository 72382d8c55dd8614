"""Artifacts: folders written once, named by what they were made of, verified when read.

An artifact is `<root>/<kind>/<key>/` with a `manifest.json`, written last: no manifest, no
artifact. The store is the only truth about what is fresh. There is no cache beside it and no
database over it; what the folders say is what is so. Imports neither torch nor Prefect.
"""

from dtca_core.store.artifact import Artifact
from dtca_core.store.damage import Damage
from dtca_core.store.files import write_atomic, write_json
from dtca_core.store.keys import artifact_key, canonical_json
from dtca_core.store.manifest import FileRecord, Manifest, content_digest
from dtca_core.store.provenance import InputRecord, Provenance
from dtca_core.store.store import Store
from dtca_core.store.tables import read_table, table_from_rows, write_table
from dtca_core.store.upkeep import Verdict

__all__ = [
    "Artifact",
    "Damage",
    "FileRecord",
    "InputRecord",
    "Manifest",
    "Provenance",
    "Store",
    "Verdict",
    "artifact_key",
    "canonical_json",
    "content_digest",
    "read_table",
    "table_from_rows",
    "write_atomic",
    "write_json",
    "write_table",
]
