"""Estimators and tests behind every gated number: one a file, each with its source."""
