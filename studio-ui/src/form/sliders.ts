// Which inputs are dragged, from where to where, whatever verb they are of.

export interface Slider {
  from: number;
  to: number;
  by?: "factor";
  step?: number;
  unit?: string;
  start: number;
}

export const SLIDERS: Record<string, Slider> = {
  users: { from: 1, to: 1e6, by: "factor", start: 1000 },
  rate: { from: 0.1, to: 10_000, by: "factor", start: 10 },
  ttft: { from: 50, to: 20_000, by: "factor", unit: "ms", start: 1000 },
  tpot: { from: 3, to: 300, by: "factor", unit: "ms", start: 50 },
  isl: { from: 16, to: 128_000, by: "factor", start: 1000 },
  osl: { from: 1, to: 16_000, by: "factor", start: 250 },
  context: { from: 256, to: 1_000_000, by: "factor", start: 8192 },
  customers: { from: 1, to: 1e6, by: "factor", start: 1500 },
};
