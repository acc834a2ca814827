"""`diagnose`: what is wrong with a model that runs?

`battery` has the list of checks and `diagnose` itself. `calling` passes a batch to a model and finds the logits, and
`subject` makes the copies that are run. The checks, one measurement each: `dependence` (causality, order, batch),
`padding`, `saturation` (attention weights), `gradients` (unregistered, unused and dead parameters), `losses` (start
loss, one batch), `modes` (determinism, dropout, side effects) and `precision` (other dtypes and devices). `report` is
what comes out, and `html` how a notebook shows it.
"""

from course_kit.diagnosing.battery import CHECKS, diagnose
from course_kit.diagnosing.report import Finding, Report

__all__ = ["CHECKS", "Finding", "Report", "diagnose"]
