"""Write the frozen layers for the installed transformers: `python -m ops_crawler.lifting.build`."""

import sys

from ops_crawler.lifting.frozen import FILE, freeze
from ops_crawler.lifting.library import library_version
from ops_crawler.lifting.lift import counts, lift


def main() -> None:
    """Lift everything and write the file."""
    lifting = lift(lambda done, total: print(f"\r{done}/{total}", end="", file=sys.stderr))
    FILE.write_bytes(freeze(lifting, library_version()))
    families = {layer.family for layer in lifting.layers}
    print(f"\n{len(lifting.layers)} layers of {len(families)} families; {counts(lifting.refusals.values())}")
    print(f"{FILE.stat().st_size:,} bytes: {FILE.name}")


if __name__ == "__main__":
    main()
