"""`watchkeeper experiment`: what the design page states, measured on a simulated machine."""
