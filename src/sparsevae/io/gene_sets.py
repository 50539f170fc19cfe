"""Gene sets from GMT files."""

from __future__ import annotations

from pathlib import Path

from sparsevae.exceptions import DataError
from sparsevae.io.formats import not_utf8, open_text

__all__ = ["read_gmt"]


def read_gmt(path: str | Path) -> dict[str, list[str]]:
    """Read a GMT file: in each line the name of a set, a description and its genes, with tabs between them.

    Parameters
    ----------
    path : str or Path
        Gzipped or not, as MSigDB and Enrichr have them.

    Returns
    -------
    dict from str to list of str
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(
            f"Expected a GMT file at {path}; there is none. Pass a dict from names to genes, too."
        )
    sets: dict[str, list[str]] = {}
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                fields = [field.strip() for field in line.rstrip("\r\n").split("\t")]
                if not any(fields):
                    continue
                name, genes = fields[0], [gene.split(",")[0] for gene in fields[2:] if gene]
                if not name or not genes:
                    raise DataError(
                        f"Expected a name, a description and genes with tabs between them in line {number} "
                        "of "
                        f"{path}; got {line.strip()[:60]!r}. Is it a GMT file?"
                    )
                if name in sets:
                    raise DataError(
                        f"Expected a different name for each set; {path} has '{name}' twice, again in line "
                        f"{number}. Rename one of them."
                    )
                sets[name] = genes
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error
    if not sets:
        raise DataError(f"Expected gene sets in {path}; the file is empty.")
    return sets
