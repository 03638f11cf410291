"""The studio: every question of Datahall in a browser.  It keeps nothing; what a page asks, processes answer.

page ── HTTP ── app ── bench of processes ── `answers.ask`
"""
