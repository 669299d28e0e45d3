"""Shares, without a trusted party: owners publish private moments, and anyone compares them."""

from privatest.shares.comparing import compare, compare_all
from privatest.shares.plan import SharePlan, plan_share
from privatest.shares.sharing import Share, share

__all__ = ["Share", "SharePlan", "compare", "compare_all", "plan_share", "share"]
