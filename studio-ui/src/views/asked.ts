// What a view asks before anybody says anything, and which inputs stand at the top.

import type { Given } from "../ask/shapes";
import type { Slider } from "../form/Field";

export interface Asked {
  given: Given;
  first: string[];
  sliders?: Record<string, Slider>;
}

const USUAL: Record<string, Asked> = {
  "plan serve": {
    given: { model: "llama-3.1-70b", users: "10000", ttft: "1s", tpot: "50ms", chips: "h100-sxm,h200-sxm,b200-sxm,mi300x", buy: "rent,own,spot,api" },
    first: ["model", "users", "rate", "ttft", "tpot", "isl", "osl", "chips", "buy", "objective"],
    sliders: {
      users: { from: 10, to: 1e6, by: "factor", start: 10_000 },
      ttft: { from: 100, to: 10_000, by: "factor", unit: "ms", start: 1000 },
      tpot: { from: 5, to: 200, by: "factor", unit: "ms", start: 50 },
    },
  },
  "plan train": {
    given: { model: "llama-3.1-70b", tokens: "15T", deadline: "60d", chip: "h200-sxm" },
    first: ["model", "tokens", "deadline", "budget", "chip", "chips", "precision", "batch"],
  },
  "show fabric": { given: { on: "fat-tree", chips: "1024" }, first: ["on", "chips", "chip", "domain", "oversubscription", "nic"] },
  "show collective": { given: { collective: "all-reduce", size: "256MB", chip: "h100-sxm", chips: "64" }, first: ["collective", "size", "chip", "chips", "on", "algorithm"] },
  "show roofline": { given: { model: "llama-3.1-70b", chip: "h100-sxm" }, first: ["model", "chip", "batch", "context", "precision", "tp"] },
  "show hierarchy": { given: { chip: "h100-sxm" }, first: ["chip", "working_set"] },
  "show chip": { given: { chip: "h100-sxm" }, first: ["chip"] },
  "show model": { given: { model: "llama-3.1-70b" }, first: ["model"] },
  "simulate train": { given: { model: "llama-3.1-70b", chip: "h100-sxm", chips: "512" }, first: ["model", "chip", "chips", "tp", "pp", "dp", "batch", "micro_batch", "seq"] },
  "show memory": { given: { model: "llama-3.1-70b", chip: "h100-sxm", chips: "64" }, first: ["model", "chip", "chips", "tp", "pp", "zero"] },
  "show training-techniques": { given: { model: "llama-3.1-8b", chip: "h100-sxm", chips: "64" }, first: ["model", "chip", "chips", "tp", "pp"] },
  "simulate serve": { given: { model: "llama-3.1-8b", chip: "h100-sxm", rate: "10" }, first: ["model", "chip", "tp", "replicas", "rate", "users", "isl", "osl", "ttft", "tpot"] },
  "show techniques": { given: { model: "llama-3.1-70b", chip: "h200-sxm", rate: "5" }, first: ["model", "chip", "tp", "rate", "isl", "osl"] },
  "show fit": { given: { model: "llama-3.1-70b", chip: "h100-sxm" }, first: ["model", "chip", "tp", "precision", "context", "batch"] },
  "show cost": { given: { model: "llama-3.1-405b" }, first: ["model", "chip", "tokens"] },
  validate: { given: { domain: "training" }, first: ["domain"] },
};

export function asked(verb: string): Asked {
  return USUAL[verb] ?? { given: {}, first: [] };
}
