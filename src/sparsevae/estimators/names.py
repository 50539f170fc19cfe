"""Names of factors and features: given by the user, kept with the fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.validation import shown

__all__ = ["NamesMixin", "name_features"]


class NamesMixin(ClassNamePrefixFeaturesOutMixin):
    """Names of an estimator's factors and features.

    Attributes
    ----------
    factor_names_ : dict from int to str
        Names that `name_factors` gave; absent before.
    views_ : ndarray of str of shape (n_features,)
        The view of each feature, from `set_views` or the first of two levels of columns; absent without.
    """

    _fitted: ClassVar[str]
    n_features_in_: int

    def name_factors(self, names: Mapping[int | str, str | None]) -> Self:
        """Name factors; the names are kept by ``save`` and used by tables, reports and ``transform``.

        Parameters
        ----------
        names : dict
            From a factor, by its position from 0 or the name that it has, to its name. None takes a name
            back.

        Returns
        -------
        self

        Examples
        --------
        >>> from sparsevae import NMF
        >>> model = NMF(2, random_state=0).fit([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [2.0, 0.0, 4.0]])
        >>> model.name_factors({0: "stress"}).get_feature_names_out().tolist()
        ['stress', 'nmf1']
        """
        check_is_fitted(self, self._fitted)
        known = [str(name) for name in self.get_feature_names_out()]
        kept: dict[int, str] = dict(getattr(self, "factor_names_", {}))
        for factor, name in _pairs(names):
            k = _factor_position(factor, known)
            kept.pop(k, None)
            if name is not None:
                kept[k] = _checked_name(name, factor)
        default = super().get_feature_names_out()
        final = [kept.get(k, str(name)) for k, name in enumerate(default)]
        twice = sorted({name for name in final if final.count(name) > 1})
        if twice:
            raise ParameterError(
                f"Expected a different name for each factor; got {shown(twice)} more than once. Choose "
                "another name for one of them."
            )
        self.factor_names_ = dict(sorted(kept.items()))
        return self

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Names of the factors: those of `name_factors`, else the name of the class and a number.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str
        """
        names = np.asarray(super().get_feature_names_out(input_features), dtype=object)
        for k, name in getattr(self, "factor_names_", {}).items():
            names[k] = name
        return names

    def feature_names(self) -> np.ndarray:
        """Names of the features, as fit saw them; x0, x1, ... where the table had none.

        Absences that are modelled follow, with the names of their columns.
        """
        if hasattr(self, "feature_names_in_"):
            names = np.asarray(self.feature_names_in_, dtype=object)
        else:
            names = np.array([f"x{j}" for j in range(self.n_features_in_)], dtype=object)
        absent = getattr(self, "absent_columns_", None)
        if absent is None:
            return names
        return np.append(names, np.array([f"{names[j]} is missing" for j in absent], dtype=object))

    def set_feature_names(self, names: Sequence[object] | np.ndarray) -> Self:
        """Name the features of a fit whose table had no names, such as a sparse matrix of words.

        Parameters
        ----------
        names : sequence of length n_features
            All different.

        Returns
        -------
        self
        """
        check_is_fitted(self, self._fitted)
        before = {name: vars(self)[name] for name in _OF_FEATURES if name in vars(self)}
        self._take_feature_names(names)
        try:
            self.resolved_likelihood()  # type: ignore[attr-defined]
        except (DataError, ParameterError) as error:
            for name in _OF_FEATURES:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise ParameterError(
                "Expected names that likelihood= can be read with; it names columns that would be gone. Name "
                "columns in likelihood= by their positions, or rename the columns before fit."
            ) from error
        return self

    def set_views(self, views: Sequence[object] | np.ndarray | Mapping[str, object] | None) -> Self:
        """Say which view each feature belongs to; views are kept by ``save`` and shown by reports.

        A data frame with two levels of column names has views from ``fit`` on: the first level.

        Parameters
        ----------
        views : sequence of length n_features, dict or None
            The view of each feature, such as the assay or the questionnaire that it comes from; or a dict
            from the name of a feature to its view. None takes the views back.

        Returns
        -------
        self
        """
        check_is_fitted(self, self._fitted)
        if views is None:
            self.__dict__.pop("views_", None)
            return self
        names = [str(name) for name in self.feature_names()[: self.n_features_in_]]
        if isinstance(views, Mapping):
            missing = [name for name in names if name not in views]
            if missing:
                raise ParameterError(
                    f"Expected a view for each feature; there is none for {shown(missing)}. Add them."
                )
            views = [views[name] for name in names]
        labels = [str(view) for view in views]
        if len(labels) != self.n_features_in_:
            raise ParameterError(
                f"Expected a view for each of {self.n_features_in_} features; got {len(labels)}. Pass as "
                "many as columns of the table."
            )
        self.views_ = np.array(labels, dtype=object)
        return self

    def feature_views(self) -> np.ndarray | None:
        """The view of each feature, or None where the fit knows of no views.

        Absences that are modelled follow, in the views of their columns.
        """
        views, absent = getattr(self, "views_", None), getattr(self, "absent_columns_", None)
        return views if views is None or absent is None else np.append(views, views[absent])

    @property
    def given_feature_names(self) -> np.ndarray | None:
        """Names of the features that were given to `fit` by hand, and that its table does not carry."""
        return self.feature_names_in_ if getattr(self, "_names_given", False) else None

    # -- for fit --------------------------------------------------------------------------------------------

    def _forget_names(self) -> None:
        """Names belong to a fit, not to the next one."""
        for name in ("factor_names_", "_names_given", "views_"):
            self.__dict__.pop(name, None)

    def _take_feature_names(self, names: Sequence[object] | np.ndarray) -> None:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ParameterError(
                f"Expected feature_names to be a sequence of names; got {names!r}. Pass for example "
                "vectorizer.get_feature_names_out()."
            )
        labels = [str(name) for name in names]
        if len(labels) != self.n_features_in_:
            raise ParameterError(
                f"Expected feature_names with {self.n_features_in_} names, one for each column of the table; "
                f"got {len(labels)}. Pass the names of its columns, in their order."
            )
        if len(set(labels)) != len(labels):
            twice = [name for name in dict.fromkeys(labels) if labels.count(name) > 1]
            raise ParameterError(
                f"Expected a different name for each feature; got {shown(twice)} more than once. Make them "
                "unique, for AnnData with adata.var_names_make_unique()."
            )
        self.feature_names_in_ = np.array(labels, dtype=object)
        self._names_given = True

    @contextmanager
    def _allowing_nameless(self, X: object) -> Iterator[None]:
        """Names that were given by hand cannot be expected of the tables that follow."""
        if hasattr(X, "columns") or self.given_feature_names is None:
            yield
            return
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            yield


def name_features(pipeline: Any) -> Any:
    """Give the estimators in a fitted pipeline the names of the columns that the steps before them make.

    A sparse matrix carries no names, so that in ``make_pipeline(CountVectorizer(), SparseVAE())`` the words
    are known to the vectoriser only. This hands them on.

    Parameters
    ----------
    pipeline : Pipeline, ColumnTransformer, FeatureUnion or a fitted search over one
        Fitted. Pipelines inside are named too.

    Returns
    -------
    pipeline

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> import sparsevae
    >>> pipe = make_pipeline(CountVectorizer(), sparsevae.NMF(1, likelihood="poisson", random_state=0))
    >>> pipe = sparsevae.name_features(pipe.fit(["sun moon", "sun sun moon", "rain"]))
    >>> pipe[-1].feature_names().tolist()
    ['moon', 'rain', 'sun']
    """
    if not _name_inside(pipeline):
        raise ParameterError(
            "Expected a fitted pipeline with an estimator of this package after at least one step; got "
            f"{type(pipeline).__name__}. Pass make_pipeline(CountVectorizer(), SparseVAE()).fit(...), or "
            "call set_feature_names on the estimator."
        )
    return pipeline


_OF_FEATURES = ("feature_names_in_", "_names_given")


def _name_inside(part: Any) -> int:
    """Name the estimators in a part of a pipeline; how many there were."""
    if hasattr(part, "best_estimator_"):
        return _name_inside(part.best_estimator_)
    if hasattr(part, "steps"):
        named = sum(_name_inside(step) for _, step in part.steps)
        for i, (_, step) in enumerate(part.steps):
            if i and isinstance(step, NamesMixin):
                step.set_feature_names(_names_before(part, i))
                named += 1
        return named
    inside = getattr(part, "transformers_", None) or getattr(part, "transformer_list", None) or ()
    return sum(_name_inside(item[1]) for item in inside)


def _names_before(pipeline: Any, i: int) -> np.ndarray:
    try:
        return pipeline[:i].get_feature_names_out()
    except (AttributeError, ValueError) as error:
        raise ParameterError(
            f"Expected fitted steps that know the names of their columns (get_feature_names_out); got "
            f"{str(error).strip().rstrip('.')}. Name the features by hand: "
            "pipeline[-1].set_feature_names(names)."
        ) from error


def _pairs(names: object) -> list[tuple[object, object]]:
    if not isinstance(names, Mapping):
        raise ParameterError(
            f"Expected a dict from factors to names; got {names!r}. Pass for example {{0: 'stress'}}."
        )
    return list(names.items())


def _factor_position(factor: object, known: list[str]) -> int:
    if isinstance(factor, (int, np.integer)) and not isinstance(factor, bool) and 0 <= factor < len(known):
        return int(factor)
    if isinstance(factor, str) and factor in known:
        return known.index(factor)
    raise ParameterError(
        f"Expected a factor by its position from 0 to {len(known) - 1}, or by its name; got {factor!r}. "
        f"Names are {shown(known)}."
    )


def _checked_name(name: object, factor: object) -> str:
    if not isinstance(name, str) or not name.strip() or name != name.strip() or not name.isprintable():
        raise ParameterError(
            f"Expected a name in printable letters, without blanks around it; got {name!r} for factor "
            f"{factor!r}. Pass for example 'stress', or None to take its name back."
        )
    return name
