"""Write the frozen layers for the installed transformers: `python -m ops_crawler.lifting.build`.

It takes long. Results are kept by module; started again after an interruption it does the rest.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ops_crawler.lifting.frozen import FILE, PATIENCE, freeze
from ops_crawler.lifting.kept import Kept
from ops_crawler.lifting.library import library_version
from ops_crawler.lifting.lift import counts, lift


def main(arguments: Sequence[str] | None = None) -> None:
    """Lift everything and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="File to write; without it, the one of this package.")
    parser.add_argument(
        "--kept", type=Path, default=Path("runs/lifting"), help="Folder of results by module."
    )
    parser.add_argument("--only", default="", help="Limit to modules whose name contains this; with --out.")
    options = parser.parse_args(arguments)
    if options.only and not options.out:
        parser.error("--only leaves most layers out; say with --out where to write the others")
    out = options.out or FILE
    lifting = lift(_tell, options.only, Kept(options.kept), PATIENCE)
    out.write_bytes(freeze(lifting, library_version()))
    families = {layer.family for layer in lifting.layers}
    print(f"\n{len(lifting.layers)} layers of {len(families)} families; {counts(lifting.refusals.values())}")
    print(f"{out.stat().st_size:,} bytes: {out.name}")


def _tell(done: int, total: int) -> None:
    print(f"\r{done}/{total}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
