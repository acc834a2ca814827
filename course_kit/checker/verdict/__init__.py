"""From observations to a report: `judge` decides, `diagnose` names the mistake."""
