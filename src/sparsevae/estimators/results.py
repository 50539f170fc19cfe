"""What users of texts, genes and ratings ask of a fit: thin methods over `sparsevae.inspection`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from sparsevae.aliases import JSON, TableLike
from sparsevae.estimators.fitted import SparseFit
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.inspection.codes import Codes
from sparsevae.inspection.gene_sets import compare_sets
from sparsevae.inspection.samples import extreme_samples, list_samples
from sparsevae.inspection.words import coherence_of, gather_words
from sparsevae.io.gene_sets import read_gmt
from sparsevae.validation import check_choice, check_positive

__all__ = ["ResultsMixin"]


class ResultsMixin(SparseFit):
    """Reading a fit by its samples and features.

    Attributes
    ----------
    extremes_ : dict
        Samples at both ends of each factor, of the rows at which the fit was read.
    """

    def top_samples(
        self,
        n: int = 10,
        X: TableLike | None = None,
        *,
        samples: Sequence[object] | np.ndarray | None = None,
    ) -> pd.DataFrame:
        """The samples at both ends of each active factor: what to read to find its name.

        Parameters
        ----------
        n : int
            At each end.
        X : array, data frame or sparse matrix of shape (n_samples, n_features), optional
            Where to look; by default the rows of the fit, at most 2,000 of them.
        samples : sequence of length n_samples, optional
            Names of the rows, or the texts themselves; by default the index of a data frame, or positions.

        Returns
        -------
        DataFrame
            Columns: factor, end ("strongest" or "weakest"), rank, sample, value.
        """
        check_is_fitted(self, "module_")
        check_positive("n", n, integer=True)
        if X is None:
            if not hasattr(self, "extremes_"):
                raise DataError(
                    "Expected a model that remembers its samples; this one was saved by version 0.1. Pass "
                    "the table as X."
                )
            extremes = self.extremes_
        else:
            if samples is None and hasattr(X, "columns"):
                samples = getattr(X, "index", None)
            Z = self.codes(X).means()
            if samples is not None and len(samples) != len(Z):
                raise DataError(
                    f"Expected a name for each of {len(Z)} samples; got {len(samples)}. Pass as many as rows."
                )
            extremes = extreme_samples(Z, np.arange(len(Z)), n)
        return list_samples(extremes, n, self.active_names(), samples)

    def coherence(self, X: TableLike | Codes, *, n: int = 10) -> pd.Series:
        """NPMI coherence of each active factor: how often its strongest features occur together.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features), or Codes
            Counts or zeros and ones; documents that the fit did not see are the honest choice.
        n : int
            Features of each factor, the strongest that rise with it.

        Returns
        -------
        Series
            From -1 (never together) over 0 (as by chance) to 1 (always together); NaN for a factor with
            fewer than two such features.

        Raises
        ------
        DataError
            If a value is negative: zero would not say that a feature is absent.
        """
        check_is_fitted(self, "module_")
        check_positive("n", n, integer=True)
        table = (X if isinstance(X, Codes) else self.codes(X)).in_memory.X
        if np.asarray(table.data if sparse.issparse(table) else table).min(initial=0) < 0:
            raise DataError(
                "Expected counts, or zeros and ones, where 0 says that a feature does not occur; got "
                "negative values. Coherence is for words and other things that occur or do not."
            )
        names = self.active_names()
        values = coherence_of(self.effects_, self.variance_shares_, table, self.active_factors_, n)
        return pd.Series(values, index=pd.Index(list(names.values()), name="factor"), name="npmi")

    def enrichment(
        self,
        gene_sets: Mapping[str, Sequence[str]] | str | Path,
        *,
        direction: str = "any",
        min_size: int = 3,
    ) -> pd.DataFrame:
        """Gene sets, or other sets of features, that each active factor's features belong to.

        A hypergeometric test of the features that use a factor, against all features of the fit. Zeros of the
        mask are exact, so that no cut-off is needed.

        Parameters
        ----------
        gene_sets : dict, str or Path
            From the name of a set to its features; or a GMT file.
        direction : {"any", "up", "down"}
            Test all features of a factor, or those that rise, or fall, with it.
        min_size : int
            Sets with fewer features of the fit are not tested; their number is logged.

        Returns
        -------
        DataFrame
            A row per factor and set with an overlap, by factor and p-value: factor, set, n_overlap,
            n_factor, n_set, fold, p_value, q_value (false discovery rate over all tests), features.
        """
        check_is_fitted(self, "module_")
        check_choice("direction", direction, ("any", "up", "down"))
        check_positive("min_size", min_size, integer=True)
        sets = read_gmt(gene_sets) if isinstance(gene_sets, str | Path) else gene_sets
        if not isinstance(sets, Mapping) or any(isinstance(genes, str) for genes in sets.values()):
            raise ParameterError(
                f"Expected gene_sets to be a dict from names to lists of features, or a GMT file; got "
                f"{type(gene_sets).__name__}. Pass for example {{'T cells': ['CD3D', 'CD3E']}}."
            )
        sign = {"any": 0, "up": 1, "down": -1}[direction]
        wanted = np.ones_like(self.effects_, dtype=bool) if not sign else sign * self.effects_ > 0
        supports = {
            name: np.array([j for j in self.strongest_features(k) if wanted[j, k]], dtype=int)
            for k, name in self.active_names().items()
        }
        return compare_sets(supports, sets, [str(name) for name in self.feature_names()], min_size=min_size)

    def explained_by_view(self, views: Sequence[object] | np.ndarray | None = None) -> pd.DataFrame:
        """Variance that each active factor explains in each view, a group of features.

        Parameters
        ----------
        views : sequence of length n_features, optional
            The view of each feature, such as the assay or the questionnaire that it comes from; by default
            those of `set_views`, or of the columns of the table.

        Returns
        -------
        DataFrame
            A row per active factor and a last one for all, a column per view: means over the features of the
            view of what `explained` averages over all features.
        """
        check_is_fitted(self, "module_")
        if views is None:
            views = self.feature_views()
        if views is None:
            raise ParameterError(
                "Expected a fit that knows the views of its features; this one does not. Pass views=, or "
                "call set_views."
            )
        labels = np.array([str(view) for view in views], dtype=object)
        if len(labels) != len(self.mask_):
            raise ParameterError(
                f"Expected a view for each of {len(self.mask_)} features; got {len(labels)}. Pass as many as "
                "columns of the table."
            )
        names = self.active_names()
        columns = {
            view: [
                *self.variance_shares_[labels == view][:, self.active_factors_].mean(0),
                self.communalities_[labels == view].mean(),
            ]
            for view in dict.fromkeys(labels)
        }
        return pd.DataFrame(columns, index=pd.Index([*names.values(), "all factors"], name="factor"))

    def _word_evidence(self, codes: Codes, factors: dict[int, str], strongest: dict[int, np.ndarray]) -> JSON:
        """Frequencies of features, where they have any: counts, and answers of yes and no."""
        observation = self.module_.observation
        # Neither real values nor levels say by zero that a feature does not occur.
        if (observation.real_columns | observation.level_columns).any() or not factors:
            return {}
        coherence = self.coherence(codes).to_numpy()
        return {"words": gather_words(self.module_, codes, factors, strongest, coherence)}

    def _remember_samples(self, codes: Codes, rows: np.ndarray) -> None:
        self.extremes_ = extreme_samples(codes.means(rows), codes.positions[rows])
