"""The report: one HTML file that says what a run did, for someone who was not there."""

from dtca_core.report.page import ReportInputs, render_report

__all__ = ["ReportInputs", "render_report"]
