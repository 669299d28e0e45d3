"""Reports: one page of HTML for a result, made from its JSON document and public words alone."""

from privatest.reports.writing import report, report_html

__all__ = ["report", "report_html"]
