"""Reference clips: taken in, judged, kept as canonical PCM. Pure rules, no model classes, no database."""
