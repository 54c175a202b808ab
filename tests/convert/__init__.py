"""Tests of sickbay.convert."""
