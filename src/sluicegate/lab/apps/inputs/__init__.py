"""Inputs of the applications: generators whose record i is a formula of i, and readers of real files."""
