"""The content of a report as plain values: what the page shows, and what the JSON beside it holds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sparsevae._version import __version__
from sparsevae.aliases import JSON
from sparsevae.exceptions import DataError
from sparsevae.identifiability import Certificate, Stability
from sparsevae.identifiability.records import certificate_from_record, certificate_record
from sparsevae.inspection.evidence import EVIDENCE_FORMAT
from sparsevae.report.numbers import rounded
from sparsevae.report.schema import Content, Factor, Feature, Fit, History, Links, Neighbour, Refits, Views
from sparsevae.report.trade import build_trade
from sparsevae.report.words import factor_label, summarise

if TYPE_CHECKING:
    from sparsevae.estimators import SparseVAE

__all__ = ["CONTENT_FORMAT", "build_content"]

CONTENT_FORMAT = 1
"""Version of the layout of the JSON beside a page."""

_HISTORY_ROWS = 600
_LEVEL = 0.9  # of the intervals of effects
_NEIGHBOURS = 5  # other factors named on a card


def build_content(
    model: SparseVAE,
    *,
    evidence: JSON | None = None,
    stability: Stability | None = None,
    record: JSON | None = None,
    title: str = "",
) -> Content:
    """Collect what a report says; nothing is fitted and no table is read.

    Parameters
    ----------
    model : SparseVAE
        Fitted.
    evidence : dict, optional
        From `gather_evidence`; without it there are no verdicts, points, samples and ablations.
    stability : Stability, optional
    record : dict, optional
        The run's record: settings, versions, fingerprint of the data.
    title : str

    Returns
    -------
    dict
        Plain values that JSON can hold. Features and factors are referred to by position in the lists
        ``features`` and ``factors``.
    """
    evidence = _checked(evidence, model)
    certificate = None
    if evidence is not None:
        certificate = certificate_from_record(evidence["certificate"])
        if stability is not None:
            certificate = certificate.with_stability(stability)
    links = _links(model, evidence, stability)
    features = _features(model, links)
    factors = _factors(model, links, features, evidence, certificate, stability)
    content: Content = {
        "format": CONTENT_FORMAT,
        "title": title or "Factors of a fit",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "package_version": __version__,
        "summary": [],
        "source": None if evidence is None else evidence["source"],
        "variance_explained": rounded(model.communalities_.mean()),
        "n_possible_links": int(len(features) * len(factors)),
        "overall": None if evidence is None else evidence.get("words", {}).get("overall"),
        "features": features,
        "feature_order": model.feature_order().tolist(),
        "factors": factors,
        "links": links,
        "correlation": rounded(_correlation(model)),
        "stability": None if stability is None else _refits(stability),
        "certificate": None if certificate is None else certificate_record(certificate),
        "history": _history(model.history_),
        "fit": _fit(model),
        "trade": build_trade(model, links),
        "groups": _groups(model),
        "views": _views(model),
        "settings": {
            name: _json_value(value) for name, value in model.get_params().items() if name != "verbose"
        },
        "run": {key: record[key] for key in _OF_THE_RUN if key in record} if record else {},
    }
    content["summary"] = summarise(content)
    return content


def _groups(model: SparseVAE) -> JSON | None:
    """Which factors each group of rows has, where the fit knew of groups."""
    if not hasattr(model, "groups_"):
        return None
    table = model.group_factors()
    return {
        "names": [str(label) for label in model.groups_],
        "roles": {str(name): str(role) for name, role in table["role"].items()},
        "deviations": rounded(table.drop(columns="role").to_numpy()),
    }


def _views(model: SparseVAE) -> Views | None:
    """What factors explain of each view, where the fit knew of views."""
    views = model.feature_views()
    if views is None:
        return None
    table = model.explained_by_view(views)
    return {
        "names": [str(view) for view in table.columns],
        "n_features": [int((views == view).sum()) for view in table.columns],
        "explained": rounded(table.iloc[:-1].to_numpy()),
        "together": rounded(table.iloc[-1].to_numpy()),
    }


_OF_THE_RUN = ("created", "versions", "data", "seed", "assumptions", "warnings")


def _checked(evidence: JSON | None, model: SparseVAE) -> JSON | None:
    if evidence is None:
        return None
    names = [str(name) for name in model.get_feature_names_out()[model.active_factors_]]
    known = {"source", "certificate", "ablation", "curves", "samples"}
    if evidence.get("format") != EVIDENCE_FORMAT or known - evidence.keys():
        raise DataError(
            f"Expected evidence of format {EVIDENCE_FORMAT}; got {evidence.get('format')!r}. Give the table, "
            "and it is gathered anew."
        )
    if list(evidence["curves"]) != names:
        raise DataError("Expected evidence on this fit; got that of another one. Give the table of this fit.")
    return evidence


def _links(model: SparseVAE, evidence: JSON | None, stability: Stability | None) -> Links:
    """The non-zero entries of the mask as columns, strongest first within a factor."""
    active = model.active_factors_
    shares = model.variance_shares_[:, active]
    used = model.mask_[:, active] != 0
    features, factors = np.nonzero(used)
    order = np.lexsort((-shares[features, factors], factors))
    j, a = features[order], factors[order]
    k = active[a]
    links: Links = {
        "feature": j.tolist(),
        "factor": a.tolist(),
        "weight": rounded(model.mask_[j, k]),
        "effect": rounded(model.effects_[j, k]),
        "strength": rounded(model.link_strength()[j, k]),
        "share": rounded(model.variance_shares_[j, k]),
        "direction": _directions(model, evidence)[j, a].tolist(),
        "inclusion": rounded(model.inclusion_[j, k]),
    }
    if getattr(model, "resamples_", None):
        sure = model.effects(ci=_LEVEL)
        for name in ("low", "high", "selection"):
            columns = sure[name].to_numpy().reshape(len(active), -1)
            links[name] = rounded(columns[a, j])  # type: ignore[literal-required]
    if stability is not None:
        names = [str(name) for name in model.get_feature_names_out()[active]]
        chosen = stability.selection_probability.reindex(columns=names).to_numpy(dtype=float)
        if len(chosen) != len(model.mask_):
            raise DataError(
                f"Expected a stability result on {len(model.mask_)} features, as in the fit; got one on "
                f"{len(chosen)}. Run stability again."
            )
        links["selected"] = rounded(chosen[j, a], 3)
    return links


def _directions(model: SparseVAE, evidence: JSON | None) -> np.ndarray:
    """Whether features rise or fall with active factors; evidence of version 0.1 does not have it."""
    if evidence is not None and "directions" in evidence:
        return np.asarray(evidence["directions"]).reshape(len(model.mask_), -1)
    return model.link_directions()[:, model.active_factors_]


def _features(model: SparseVAE, links: Links) -> list[Feature]:
    numbers: list[list[int]] = [[] for _ in model.mask_]
    strength = np.abs(np.asarray(links["strength"], dtype=float))
    for link in np.argsort(-strength, kind="stable").tolist():
        numbers[links["feature"][link]].append(link)
    features: list[Feature] = [
        {"name": str(name), "communality": rounded(communality), "links": own}
        for name, communality, own in zip(model.feature_names(), model.communalities_, numbers, strict=True)
    ]
    views = model.feature_views()
    for feature, view in zip(features, () if views is None else views, strict=False):
        feature["view"] = str(view)
    return features


def _factors(
    model: SparseVAE,
    links: Links,
    features: list[Feature],
    evidence: JSON | None,
    certificate: Certificate | None,
    stability: Stability | None,
) -> list[Factor]:
    correlation = _correlation(model)
    names = [str(name) for name in model.get_feature_names_out()[model.active_factors_]]
    verdicts = (
        {}
        if certificate is None
        else {row["factor"]: row for row in certificate_record(certificate)["table"]}
    )
    refits = None if stability is None else stability.table
    factors = []
    for a, (k, name) in enumerate(zip(model.active_factors_, names, strict=True)):
        own = [link for link, factor in enumerate(links["factor"]) if factor == a]
        anchors = [link for link in own if len(features[links["feature"][link]]["links"]) == 1]
        factor: Factor = {
            "name": name,
            "index": int(k),
            "label": "",
            "variance_explained": rounded(model.variance_explained_[k]),
            "links": own,
            "anchors": anchors,
            "inclusion_rate": rounded(model.inclusion_rate_[k]),
            "neighbours": _neighbours(a, correlation, links, features),
            "certificate": verdicts.get(name),
            "stability": None,
            "ablation": None,
            "curves": [],
            "samples": None,
            "words": None,
        }
        factor["label"] = factor_label(factor, links, features)
        if refits is not None and name in refits.index:
            factor["stability"] = {str(key): rounded(float(value)) for key, value in refits.loc[name].items()}
        if evidence is not None:
            factor["ablation"] = evidence["ablation"][name]
            factor["curves"] = evidence["curves"][name]
            factor["samples"] = evidence["samples"][name]
            if "words" in evidence:
                words = evidence["words"]
                factor["words"] = {
                    "features": words["features"][name],
                    "high": words["high"][name],
                    "coherence": words["coherence"][name],
                }
        factors.append(factor)
    return factors


def _neighbours(a: int, correlation: np.ndarray, links: Links, features: list[Feature]) -> list[Neighbour]:
    """Other factors by what they share with this one: features, and correlation."""
    shared = np.zeros(len(correlation), dtype=int)
    for feature in features:
        factors = [links["factor"][link] for link in feature["links"]]
        if a in factors:
            shared[factors] += 1
    shared[a] = -1
    score = shared + 10.0 * np.abs(correlation[a])
    score[a] = -np.inf
    order = np.argsort(-score, kind="stable")[: min(_NEIGHBOURS, len(score) - 1)]
    return [
        {"factor": int(b), "correlation": rounded(correlation[a, b]), "n_shared": int(shared[b])}
        for b in order
    ]


def _correlation(model: SparseVAE) -> np.ndarray:
    return model.factor_correlation().to_numpy()


def _refits(stability: Stability) -> Refits:
    fitted = stability.refits["failure"] == ""
    return {
        "how": stability.how,
        "n_refits": len(stability.refits),
        "n_failed": int((~fitted).sum()),
        "n_active": [int(n) for n in stability.refits.loc[fitted, "n_active"]],
    }


def _history(history: pd.DataFrame) -> History:
    """The history by columns; of a very long one evenly spread epochs."""
    rows = np.unique(np.linspace(0, max(len(history) - 1, 0), min(len(history), _HISTORY_ROWS)).astype(int))
    kept = history.iloc[rows].assign(epoch=rows + 1)  # counted through all phases
    return {
        str(name): kept[name].astype(str).tolist()
        if kept[name].dtype.kind not in "biuf"
        else rounded(kept[name].to_numpy(dtype=float), 5)
        for name in kept.columns
    }


def _fit(model: SparseVAE) -> Fit:
    starts = model.starts_.to_dict("records") if hasattr(model, "starts_") else []
    dropped, names = getattr(model, "dropped_factors_", {}), model.get_feature_names_out()
    return {
        "n_epochs": int(model.n_iter_),
        "number_note": model.number_note(),
        "not_used": [{"factor": str(names[k]), "reason": str(why)} for k, why in dropped.items()],
        "starts": [{str(key): _json_value(value) for key, value in start.items()} for start in starts],
    }


def _json_value(value: object) -> object:
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value)
        return rounded(array) if array.dtype.kind == "f" and array.size > 8 else array.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return rounded(value, 7)
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    return value if isinstance(value, str | int | bool | None) else str(value)
