"""Filters and expressions over Arrow data: how `skipstone.predicate.evaluation` computes what it promises."""
