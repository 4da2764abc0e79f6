"""The nemesis: it carries out the timeline of a scenario in any world.

`world` lists what an action may touch: the clock, the trace, processes, servers and topics
of a run, as Protocols that a simulated and a live world both fulfil. `nemesis` is the
timeline at work: it strikes at a moment or at a step of a member, and undoes what has an
end. `targets` finds the process that an action means by a role. `actions` holds the actions
that are the same in every world; `topic_changes` those on topics, with the rules for each
layout. `load` is a stream of messages, `placement` says which partitions a broker has on
disk. The faults that each world brings about in its own way are in
`watchkeeper.sim.faults` and `watchkeeper.real.faults`.
"""
