// What the API sends, as `GET /openapi.json` describes it.

export type Cell = string | number | boolean | null | { value: number; unit: string; low?: number; high?: number };

export interface Said {
  name: string;
  text: string;
  value: Cell;
}

export interface Column {
  name: string;
  unit?: string;
  key?: string;
  aside?: boolean;
}

export interface Table {
  title: string;
  columns: Column[];
  numeric: boolean[];
  texts: string[][];
  cells: Cell[][];
  marked: number | null;
  note: string;
}

export interface Figure {
  name: string;
  text: string;
  value: number;
  unit: string;
  formula: string;
  marks: string[];
  sources: number[];
  parts: Figure[];
}

export interface Source {
  title: string;
  date: string;
  kind: string;
}

export interface Chart {
  title: string;
  svg: string;
  keys: [string, string][];
  note: string;
}

export interface Answer {
  kind: string;
  verb: string;
  given: Given;
  question: Record<string, unknown>;
  verdict: "yes" | "no";
  headline: string;
  binding: string;
  asked: Said[];
  defaults: Said[];
  results: Record<string, Said>;
  tables: Table[];
  charts: Chart[];
  figures: Figure[];
  notes: string[];
  citations: { number: number; source: Source }[];
  next: string[];
}

export interface Problem {
  where: string;
  message: string;
  hint: string;
}

export interface Wrong {
  code: string;
  message: string;
  exit_code?: number;
  field?: string;
  where?: string;
  hint?: string;
  problems?: Problem[];
}

export interface Input {
  name: string;
  section: string;
  key: string;
  help: string;
  placeholder: string;
  kind: string;
  default?: string;
  words?: string[];
  example?: string;
  group?: string;
  names?: boolean;
  listed?: boolean;
  is_required?: boolean;
  is_argument?: boolean;
  is_rare?: boolean;
  needs?: string[];
  against?: string[];
}

export interface Part {
  name: string;
  about: string;
  is_inline: boolean;
  inputs: Input[];
}

export interface Form {
  name: string;
  about: string;
  details: string;
  group: string;
  parts: Part[];
  artefacts: string[];
  is_traced: boolean;
  examples: string[];
}

export interface Forms {
  version: number;
  groups: { name: string; about: string; verbs: string[] }[];
  verbs: Record<string, string>;
}

// Inputs by the names that flags have, as they are typed.
export type Given = Record<string, string>;
