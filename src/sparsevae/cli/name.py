"""``sparsevae name``: names for the factors of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsevae.cli.console import one_sentence_errors, print_json
from sparsevae.cli.options import JsonOption, RunArgument
from sparsevae.exceptions import ParameterError
from sparsevae.runs import Run

__all__ = ["name"]


@one_sentence_errors
def name(
    run: RunArgument,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FACTOR=NAME ...",
            help="A factor by its number or present name, and its name; nothing after = takes a name back.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Name factors of a run: in its model, its tables and every report made from now on.

    Without names, list those that the factors have.
    """
    fitted = Run.open(run)
    if names:
        fitted.name_factors(dict(_split(text) for text in names))
    model = fitted.model()
    known = {int(k): str(model.get_feature_names_out()[k]) for k in model.active_factors_}
    if as_json:
        print_json({"run": str(run), "factors": known})
        return
    top = model.top_features(4)
    for k, label in known.items():
        features = ", ".join(str(feature) for feature in top.loc[top["factor"] == label, "feature"])
        print(f"{k}  {label}  ({features})")


def _split(text: str) -> tuple[int | str, str | None]:
    factor, sign, label = text.partition("=")
    if not sign or not factor:
        raise ParameterError(f"Expected FACTOR=NAME, as in 0=stress; got {text!r}. Put = between the two.")
    return int(factor) if factor.isdecimal() else factor, label or None
