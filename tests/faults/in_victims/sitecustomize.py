"""Python imports this first, in every process of a victim."""

from softmax_temperature.runner.cells import Job
from tests.faults.steps import note_step

Job.progress = note_step
