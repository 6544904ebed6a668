"""Long texts: scripts of several speakers in, subtitles out. Pure, no Django."""
