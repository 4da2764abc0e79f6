//! Two-phase commit for Stateright: the model of `two_phase.py`, searched breadth first by one
//! thread. Arguments: the number of managers. Prints states, and the property if it is violated.

use stateright::{Checker, Model, Property};

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Manager {
    Working,
    Prepared,
    Committed,
    Aborted,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Decision {
    None,
    Commit,
    Abort,
}

/// Sets of managers have a bit for each of them.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct System {
    managers: Vec<Manager>,
    said_prepared: u32,
    heard_prepared: u32,
    decided: Decision,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Hear(usize),
    Decide(Decision),
    Prepare(usize),
    Give(usize),
    Follow(usize),
}

struct TwoPhaseCommit {
    managers: usize,
}

impl Model for TwoPhaseCommit {
    type State = System;
    type Action = Step;

    fn init_states(&self) -> Vec<System> {
        vec![System {
            managers: vec![Manager::Working; self.managers],
            said_prepared: 0,
            heard_prepared: 0,
            decided: Decision::None,
        }]
    }

    fn actions(&self, system: &System, steps: &mut Vec<Step>) {
        if system.decided == Decision::None {
            if system.heard_prepared == (1 << self.managers) - 1 {
                steps.push(Step::Decide(Decision::Commit));
            }
            steps.push(Step::Decide(Decision::Abort));
        }
        for (number, manager) in system.managers.iter().enumerate() {
            let unheard = system.said_prepared & !system.heard_prepared;
            if system.decided == Decision::None && unheard >> number & 1 == 1 {
                steps.push(Step::Hear(number));
            }
            if *manager == Manager::Working {
                steps.push(Step::Prepare(number));
                steps.push(Step::Give(number));
            }
            let follows = match system.decided {
                Decision::None => false,
                Decision::Commit => *manager != Manager::Committed,
                Decision::Abort => *manager != Manager::Aborted,
            };
            if follows {
                steps.push(Step::Follow(number));
            }
        }
    }

    fn next_state(&self, before: &System, step: Step) -> Option<System> {
        let mut system = before.clone();
        match step {
            Step::Hear(number) => system.heard_prepared |= 1 << number,
            Step::Decide(decision) => system.decided = decision,
            Step::Prepare(number) => {
                system.managers[number] = Manager::Prepared;
                system.said_prepared |= 1 << number;
            }
            Step::Give(number) => system.managers[number] = Manager::Aborted,
            Step::Follow(number) => {
                system.managers[number] = match system.decided {
                    Decision::Commit => Manager::Committed,
                    _ => Manager::Aborted,
                }
            }
        }
        Some(system)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("consistent", |_, system: &System| {
            !(system.managers.contains(&Manager::Committed)
                && system.managers.contains(&Manager::Aborted))
        })]
    }
}

fn main() {
    let managers = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let model = TwoPhaseCommit { managers: managers.expect("the number of managers") };
    let checker = model.checker().threads(1).spawn_bfs().join();
    let violated = if checker.discovery("consistent").is_some() { "violated" } else { "holds" };
    println!("{} {}", checker.unique_state_count(), violated);
}
