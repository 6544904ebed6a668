"""The whole product on one machine: a supervisor that starts PostgreSQL, Valkey, the web server, the clock
and one node.

Nothing in this package imports Django, except the commands that its children run: the supervisor stays small
and is ready to start the databases a few hundredths of a second after Python is.
"""
