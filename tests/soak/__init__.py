"""Campaigns: many random trials of what the package promises.

    make soak [MINUTES=30]         all campaigns, each with an equal share of the minutes
    pytest tests/soak -k files     one of them, for a few seconds

A campaign is a test that tries one seed after the other until its time is over. ``make test`` gives
each a second or two; ``make soak`` goes on from the seed at which the last run ended, counts what
was tried in ``soak/results.json``, and writes the table of ``docs/reliability.md`` from it. A seed
that fails is written to ``soak/failures``, with the command that tries it again.
"""
