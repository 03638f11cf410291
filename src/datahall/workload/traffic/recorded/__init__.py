"""Requests that somebody recorded: files of them, played again, and their busiest stretch."""
