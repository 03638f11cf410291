// The views, what each is for, and the questions that each asks.

export interface Way {
  view: string;
  name: string;
  about: string;
  verbs: string[];
}

export const WAYS: Way[] = [
  { view: "plan", name: "Plan", about: "what to build, and what it costs", verbs: ["plan serve", "plan train"] },
  { view: "topology", name: "Topology", about: "the hall and its network", verbs: ["show fabric", "show collective", "show transport", "simulate fabric"] },
  { view: "chip", name: "Chip", about: "one chip: memory, roofline, kernels", verbs: ["show roofline", "show hierarchy", "show chip", "show model"] },
  { view: "training", name: "Training", about: "layouts, the pipeline, memory", verbs: ["simulate train", "show memory", "show training-techniques"] },
  { view: "serving", name: "Serving", about: "requests through queue, batch and cache", verbs: ["simulate serve", "show techniques", "show fit"] },
  { view: "run", name: "Run and power", about: "failures, checkpoints, goodput, watts", verbs: ["simulate run", "show power", "show checkpoint", "show blast-radius", "show datapath", "simulate cluster"] },
  { view: "money", name: "Money", about: "rent, own, spot, API", verbs: ["show cost", "show build-or-buy", "show stage"] },
  { view: "accuracy", name: "Accuracy", about: "how far to trust a number", verbs: ["validate"] },
];

export function viewOf(verb: string): string {
  return WAYS.find((way) => way.verbs.includes(verb))?.view ?? "plan";
}
