"""What is left of a run for those who were not there: JSON, JUnit, one HTML page, a job's summary.

Takes a `verdict.Run`; gives files in a folder, and Markdown.
"""
