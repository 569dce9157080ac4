"""Whether one filter implies another: every row that makes p TRUE makes q TRUE.

The papers call it subsumption, q subsumes p (Sun, "Skipping-oriented Data Design for Large-Scale Analytics", PhD
thesis, UC Berkeley, 2017, section 3.3.1): for every predicate of q there is one of p that is as strict or stricter,
checked by hard-coded rules (section 3.5).

    F_i, F_j     p, q: conjunctions           f_u, f_v     predicates of q and of p

Departs from the paper: the predicates of p are taken together, so x >= 1 and x <= 5 imply x BETWEEN 0 AND 9, and a
contradictory p implies everything. The rules live in what a literal is read into (`implication_terms`) and in how
subjects narrow each other (`implication_theories`); here q is refuted: p holds, some predicate of q does not, and if no
row can be like that, p implies q.
"""

from __future__ import annotations

from skipstone.predicate.implication_explained import Implication, explain_implication
from skipstone.predicate.implication_matrix import implication_matrix
from skipstone.predicate.implication_premise import Conclusion, Filter, Premise, conclusion_of, premise_of

__all__ = [
    "Conclusion",
    "Filter",
    "Implication",
    "Premise",
    "conclusion_of",
    "explain_implication",
    "implication_matrix",
    "implies",
    "premise_of",
]


def implies(p: Filter, q: Filter) -> bool:
    """Whether every row that makes p TRUE makes q TRUE; False also where that is so but not found.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.expression import Column, Constant
    >>> from skipstone.predicate.literal import Comparison, Operator, Predicate
    >>> age = Column("age", pa.int32())
    >>> def over(years: int) -> Predicate:
    ...     return Predicate((Comparison(Operator.GREATER, age, Constant(years, pa.int32())),))
    >>> implies(over(50), over(18)), implies(over(18), over(50))
    (True, False)
    """
    return premise_of(p).implies(q)
