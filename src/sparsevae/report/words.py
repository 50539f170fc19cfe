"""What a report says in words."""

from __future__ import annotations

from sparsevae.aliases import JSON
from sparsevae.identifiability.refits import REFITTED
from sparsevae.report.numbers import count, percent
from sparsevae.report.schema import Content, Factor, Feature, Links, Refits
from sparsevae.report.text import shorten

__all__ = ["direction_word", "factor_label", "summarise"]

_LABEL = 3  # features that name a factor
_LONGEST = 36  # characters of a name in running text


def summarise(content: Content) -> list[str]:
    """A few sentences that a reader can repeat."""
    factors, features = content["factors"], content["features"]
    if not factors:
        reason = next(
            (item["reason"] for item in content["fit"]["not_used"]), "every column of the mask is empty"
        )
        return [f"No factor was found in {count(len(features), 'feature')}: {reason}."]
    used = len(content["links"]["feature"])
    anchors = sum(len(feature["links"]) == 1 for feature in features)
    without = sum(not feature["links"] for feature in features)
    explained = percent(content["variance_explained"])
    alone = "No feature depends" if not anchors else f"{count(anchors, 'feature')} {_depend(anchors)}"
    naming = f" and so {_name(anchors)} it" if anchors else ""
    sentences = [
        f"{count(len(factors), 'factor')} {_explain(factors)} {explained} of the variance of "
        f"{count(len(features), 'feature')}.",
        f"{used:,} of {content['n_possible_links']:,} possible links are used. "
        f"{alone} on one factor alone{naming}" + (f"; {without:,} on none." if without else "."),
    ]
    if content["fit"]["number_note"]:
        sentences.append(content["fit"]["number_note"])
    certificate = content["certificate"]
    if certificate is not None:
        sentences.append(_verdicts(certificate["table"]))
    stability = content["stability"]
    if stability is not None:
        sentences.append(_returns(factors, stability))
    groups = content.get("groups")
    if groups is not None:
        sentences.append(_shared(groups))
    largest = max(factors, key=lambda factor: factor["variance_explained"] or 0.0)
    if largest["label"]:
        anchors_name_it = len(largest["anchors"]) >= _LABEL or largest["anchors"] == largest["links"]
        known_by = "is named by" if anchors_name_it else "shows most in"
        sentences.append(
            f"{'The largest' if len(factors) > 1 else 'The'} factor, {largest['name']}, explains "
            f"{percent(largest['variance_explained'])} and {known_by} {largest['label']}."
        )
    return sentences


def factor_label(factor: Factor, links: Links, features: list[Feature]) -> str:
    """The strongest anchors of a factor as its name, and its strongest features where anchors are few."""
    chosen = list(dict.fromkeys([*factor["anchors"], *factor["links"]]))[:_LABEL]
    names = [shorten(features[links["feature"][link]]["name"], _LONGEST) for link in chosen]
    return ", ".join(names)


def direction_word(direction: int) -> str:
    """How a feature moves with a factor."""
    return {1: "rises", -1: "falls"}.get(direction, "no single direction")


def _verdicts(table: list[JSON]) -> str:
    counts = dict.fromkeys(("identified", "weak", "not identified"), 0)
    for row in table:
        counts[row["verdict"]] += 1
    same = next((verdict for verdict, number in counts.items() if number == len(table)), None)
    if same is not None:
        if same == "not identified" and len(table) > 1:
            who = "Neither of the two" if len(table) == 2 else f"None of the {len(table)}"
            return f"{who} factors is identified: the cards say why."
        who = {1: "The factor is", 2: "Both factors are"}.get(len(table), f"All {len(table)} factors are")
        return f"{who} {same}: the cards say why."
    parts = [
        f"{number} {'is' if number == 1 else 'are'} {verdict}" for verdict, number in counts.items() if number
    ]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"Of the {count(len(table), 'factor')}, {listed}: the cards say why."


def _shared(groups: JSON) -> str:
    """Which factors are shared by the groups, and which are not."""
    roles = groups["roles"]
    shared = sum(role == "shared" for role in roles.values())
    others = [f"{name} belongs to {role}" for name, role in roles.items() if role != "shared"]
    every = "both groups" if len(groups["names"]) == 2 else f"all {len(groups['names'])} groups"
    start = f"{shared} of {len(roles)} factors {'is' if shared == 1 else 'are'} shared by {every}"
    return start + (f"; {', '.join(others)}." if others else ".")


def _returns(factors: list[Factor], stability: Refits) -> str:
    shares = [factor["stability"]["reproducibility"] for factor in factors if factor["stability"]]
    often = sum(share is not None and share >= 0.8 for share in shares)
    what = REFITTED[stability["how"]]
    return (
        f"In {count(stability['n_refits'], 'refit')} on {what}, {often} of {len(shares)} factors returned at "
        "least four times out of five."
    )


def _explain(factors: list[Factor]) -> str:
    return "explains" if len(factors) == 1 else "explain"


def _depend(number: int) -> str:
    return "depends" if number == 1 else "depend"


def _name(number: int) -> str:
    return "names" if number == 1 else "name"
