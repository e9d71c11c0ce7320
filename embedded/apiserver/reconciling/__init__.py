"""What all controllers use: a work queue, Events, adoption of children, control of pods."""
