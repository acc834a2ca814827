"""From what was observed to what is said: `judge` decides, `diagnose` names the mistake."""
