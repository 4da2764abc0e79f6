// The data of the page of a counterexample of replicas.

interface Replica {
  role: string;
  follows: number | null;
  epoch: number | null;
  log: [record: number, epoch: number][];
  high_watermark: number;
  isr: number[];
  awaits_reply: boolean;
}

interface ControllerRequest {
  epoch: number;
  leader: number | null;
  isr: number[];
  open_to: number[];
}

interface ReplicasState {
  registry: ControllerRequest;
  replicas: Replica[];
  requests: ControllerRequest[];
  faults: string[];
}

interface Step {
  text: string;
  fault: string;
}

interface PageData {
  violates: string;
  says: string;
  proof: string;
  states: ReplicasState[];
  steps: Step[];
  violation: number;
  breaches: { member: number | null; leader: number; offset: number }[];
  colours: string[];
  longest: number;
}
