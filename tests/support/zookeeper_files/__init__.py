"""What tests and benches of data folders share: histories drawn from a seed, and a disk that
loses what was not synced."""
