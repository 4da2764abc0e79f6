---------------------------- MODULE TwoPhase ----------------------------
(* Two-phase commit, for TLC: the model of two_phase.py. Managers are numbered from 1. *)
EXTENDS Naturals

CONSTANT Count

VARIABLES manager, said, heard, decided

Managers == 1..Count

Init == /\ manager = [number \in Managers |-> "working"]
        /\ said = {}
        /\ heard = {}
        /\ decided = "nothing"

Hear(number) == /\ decided = "nothing"
                /\ number \in said \ heard
                /\ heard' = heard \union {number}
                /\ UNCHANGED <<manager, said, decided>>

Commit == /\ decided = "nothing"
          /\ heard = Managers
          /\ decided' = "commit"
          /\ UNCHANGED <<manager, said, heard>>

Abort == /\ decided = "nothing"
         /\ decided' = "abort"
         /\ UNCHANGED <<manager, said, heard>>

Prepare(number) == /\ manager[number] = "working"
                   /\ manager' = [manager EXCEPT ![number] = "prepared"]
                   /\ said' = said \union {number}
                   /\ UNCHANGED <<heard, decided>>

Give(number) == /\ manager[number] = "working"
                /\ manager' = [manager EXCEPT ![number] = "aborted"]
                /\ UNCHANGED <<said, heard, decided>>

Follow(number, decision, state) == /\ decided = decision
                                   /\ manager[number] # state
                                   /\ manager' = [manager EXCEPT ![number] = state]
                                   /\ UNCHANGED <<said, heard, decided>>

Next == \/ Commit
        \/ Abort
        \/ \E number \in Managers :
             \/ Hear(number)
             \/ Prepare(number)
             \/ Give(number)
             \/ Follow(number, "commit", "committed")
             \/ Follow(number, "abort", "aborted")

Consistent == ~ \E one, other \in Managers :
                  manager[one] = "committed" /\ manager[other] = "aborted"
=============================================================================
