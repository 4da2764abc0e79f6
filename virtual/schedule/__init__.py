"""Who runs next: the policies of a scheduler, and recorded schedules.

Read in this order:

  first_in_first_out  the default decisions
  random_policy       chance decides
  pct                 priorities, with few changes: finds a bug of some depth with a known chance
  recorded            a schedule once more, exactly
  delay_bounded       every schedule within some delays of the default one
  policies            policies by name
"""
