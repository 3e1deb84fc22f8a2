"""Stories in the terminal: an application's bug as it was, and repaired, played by a few raw connections."""
