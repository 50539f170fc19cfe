"""Certificates and stability results as plain values that JSON can hold, and back."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from sparsevae.aliases import JSON
from sparsevae.exceptions import DataError
from sparsevae.identifiability.certificate import LEADING, Certificate
from sparsevae.identifiability.refits import Stability
from sparsevae.identifiability.verdict import FactorEvidence

__all__ = ["certificate_from_record", "certificate_record", "stability_from_record", "stability_record"]


def certificate_record(certificate: Certificate) -> JSON:
    """Everything in a certificate except the pairs, of which there can be very many."""
    return {
        "likelihood": certificate.likelihood,
        "table": _rows(certificate.table.reset_index()),
        "notes": list(certificate.notes),
        "thresholds": dict(certificate.thresholds),
    }


def certificate_from_record(record: JSON) -> Certificate:
    """The certificate that `certificate_record` described."""
    try:
        columns = [*LEADING, *FactorEvidence().columns()]
        table = pd.DataFrame(record["table"], columns=columns)
        numbers = [name for name in columns if name not in _TEXT]
        table[numbers] = table[numbers].astype(float)
        return Certificate(
            table=table.set_index("factor"),
            pairs=pd.DataFrame(),
            notes=list(record["notes"]),
            thresholds=dict(record["thresholds"]),
            likelihood=str(record["likelihood"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged("certificate", error) from error


def stability_record(stability: Stability) -> JSON:
    """Everything in a stability result; of the selection probabilities those above zero."""
    chosen = stability.selection_probability.to_numpy()
    features, factors = np.nonzero(chosen)
    return {
        "how": stability.how,
        "reproducibility": {str(name): float(share) for name, share in stability.reproducibility.items()},
        "features": [str(name) for name in stability.selection_probability.index],
        "selected": {
            "feature": features.tolist(),
            "factor": factors.tolist(),
            "probability": chosen[features, factors].round(6).tolist(),
        },
        "matches": _rows(stability.matches),
        "refits": _rows(stability.refits),
    }


def stability_from_record(record: JSON) -> Stability:
    """The stability result that `stability_record` described."""
    try:
        names = list(record["reproducibility"])
        chosen = np.zeros((len(record["features"]), len(names)))
        selected = record["selected"]
        chosen[selected["feature"], selected["factor"]] = selected["probability"]
        return Stability(
            reproducibility=pd.Series(record["reproducibility"], dtype=float, name="reproducibility"),
            selection_probability=pd.DataFrame(
                chosen, index=record["features"], columns=pd.Index(names, name="factor")
            ),
            matches=pd.DataFrame(record["matches"], columns=_MATCHES),
            refits=pd.DataFrame(record["refits"]),
            how=str(record["how"]),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise _damaged("stability result", error) from error


_TEXT = (
    *LEADING,
    "anchors",
    "pair",
    "a2_rival",
    "nearest_factor",
    "suggested",
    "given",
    "group",
    "structure",
    "mixed_with",
)
_MATCHES = ["refit", "factor", "partner", "overlap", "rank_correlation", "returned"]


def _rows(frame: pd.DataFrame) -> list[JSON]:
    return [{str(name): _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return list(value) if isinstance(value, tuple) else value


def _damaged(what: str, error: Exception) -> DataError:
    return DataError(
        f"Expected a {what} as sparsevae wrote it; got one that is damaged ({error}). Make it again."
    )
