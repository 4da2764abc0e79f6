"""Consumer groups whose members are Kafka's and this project's, beside each other.

Reading order: `judge` (who has to own what), `members` (a member as a process that can be killed
and stopped), with the programs of a member in `GroupMember.java` and `own_member`, then the rows:
`mixed` and `offsets`.
"""
