"""Texts: cleaned, judged, cut into segments, estimated. Pure rules, no model classes, no database."""
