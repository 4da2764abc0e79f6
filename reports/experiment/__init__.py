"""The picture of experiments: what was simulated, beside what the design page states."""
