"""What to do next with one lablet, and what to report meanwhile: from facts to one step.

`decide` finds the stage of the lablet (`stage`) and asks its function in `stages`. A stage is never stored:
it follows from claim, Pod and devices, so that every replica finds the same one.

                                                             reset, or a start in vain
                               WIPING ◀────────────────────────────────┬─────────────────────┐
                               stop, wipe                              │                     │
                                 │                                     │                     │ of a lent lablet
                                 ▼                                     │                     │
    CLAIMING ──▶ FRESH ──▶ IMPORTED ──▶ BOOTING ──▶ SERVING ───────────┴──▶ CLOSING ──▶ RETURNING
    claim        search,   start        ▲  ▲        session, Ready          collect,    archive the session,
                 import                 │  │          │  │  │               grade       clear the learner
                   ▲                    │  └─ PAUSED ◀┘  │  │                 │
                   │                    │     stop       │  │                 ▼
                   │                    └─ CRASHED ◀─────┘  │               ENDING
                   │                       start again      │               stop, wipe, delete the lab;
                   └─ RENEWING ◀────────────────────────────┘               write the Pod's end
                      stop, wipe, delete; new content

A booting lab may crash as well, and one that is lost on the worker is FRESH again. ENDING may follow every stage, and
CLOSING every one with a claim: the end of a Pod, or of a learner's time, waits for no lab to boot. For as long as it
lasts, a lablet is UNEXAMINED (the claims were lost), UNSEEN (the lab cannot be seen), UNCLEAR (it shows nothing to go
by), UNNOTED (its notes are behind), PORTLESS (its ports cannot be used) or CHANGING (single devices are stopped, wiped
or started on request). CML wants stop before wipe and wipe before delete.

What stages share stands below them: `living` (what they receive, what they report, and whose lablet it is), `takedown`
(stop, wipe, delete, finish, start afresh after a failure) and `session` (the learner's LDS session, and a mux's address
in it). `exposed` is what a stage says of the lablet's ports: what comes before its decision if a mux leads to them.
`stepfault` says what a failed step shows on the Pod until it is tried again.

* `decide`: the next step of one lablet, and what to report meanwhile: the heart of the bridge.
* `stage`: the stage of a lablet: which of its stages the claim and the facts show.
* `stages`: the stages of a lablet, a function each: what to do next, and what to report meanwhile.
* `living`: a lablet that lives, as its stages see it: what its Pod reports, and whose lablet it is.
* `takedown`: taking a lab down in CML's order, stop → wipe → delete, and starting it afresh after a failure.
* `session`: a learner's session, in every stage: its events, and the mux's address in it.
* `exposed`: lending a lablet's ports to a mux: each stage says by `ports` what becomes of them before its own decision.
* `stepfault`: the fault that a failed step shows on the Pod, and its report while the step waits to be tried again.
"""
