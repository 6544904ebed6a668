"""Long texts: documents and scripts of several speakers in, subtitles out.

The readers are pure and load no Django; they run in a child process that is locked in. `intake` is its parent's side,
`errors` says in words why a document is refused.
"""
