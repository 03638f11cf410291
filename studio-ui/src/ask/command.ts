// A line of the command line as a question, and a question as a line.

import type { Form, Given, Input } from "./shapes";
import { form, forms } from "./api";

export interface Question {
  verb: string;
  given: Given;
}

// The words of a line, as a POSIX shell splits them.
export function words(line: string): string[] {
  const found: string[] = [];
  for (const match of line.matchAll(/(?:[^\s'"]+|'[^']*'|"(?:\\.|[^"\\])*")+/g))
    found.push(match[0].replace(/'([^']*)'|"((?:\\.|[^"\\])*)"/g, (_, plain?: string, double?: string) => plain ?? double!.replace(/\\(.)/g, "$1")));
  return found;
}

export function quoted(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'"'"'`)}'`;
}

export const inputs = (of: Form): Input[] => of.parts.flatMap((part) => (part.is_inline ? [] : part.inputs));

// The question of a line, where a page can ask it: no files, no options of the command line alone.
export async function question(line: string): Promise<Question | null> {
  const all = words(line);
  if (all.shift() !== "datahall") return null;
  const { verbs } = await forms();
  const verb = [2, 1].map((count) => all.slice(0, count).join(" ")).find((name) => name in verbs);
  if (!verb) return null;
  const rest = all.slice(verb.split(" ").length);
  const of = await form(verb);
  const own = new Map(inputs(of).map((input) => [input.name, input]));
  const tables = new Set(of.parts.filter((part) => part.is_inline).map((part) => part.name));
  const places = inputs(of).filter((input) => input.is_argument).map((input) => input.name);
  const given: Given = {};
  while (rest.length) {
    const word = rest.shift()!;
    if (!word.startsWith("--")) {
      const place = places.shift();
      if (!place) return null;
      given[place] = word;
      continue;
    }
    const [flag = "", joined] = word.slice(2).split(/=(.*)/s);
    const name = flag.replaceAll("-", "_");
    const off = name.startsWith("no_") && own.get(name.slice(3))?.kind === "flag";
    if (off) given[name.slice(3)] = "false";
    else if (own.get(name)?.kind === "flag") given[name] = "true";
    else if (own.has(name) || tables.has(name)) given[name] = joined ?? rest.shift() ?? "";
    else return null;
  }
  return { verb, given };
}

const FILE = /\.(toml|json|csv|jsonl|gz|yaml|txt)\b|\bpath\//;

// What a verb is asked where nobody says anything: the first of its examples that needs no file.
export async function example(of: Form): Promise<Given> {
  for (const line of of.examples) {
    const found = FILE.test(line) ? null : await question(line);
    if (found) return found.given;
  }
  return {};
}

// The inputs that stand at the top of a form: those that its examples say, and those that it needs.
export async function first(of: Form): Promise<string[]> {
  const said = await Promise.all(of.examples.map(question));
  const needed = inputs(of).filter((input) => input.is_argument || input.is_required).map((input) => input.name);
  return [...new Set([...needed, ...said.flatMap((one) => Object.keys(one?.given ?? {}))])];
}

// The line that asks the same.
export function line(of: Form, given: Given): string {
  const flag = (name: string): string => `--${name.replaceAll("_", "-")}`;
  const own = new Map(inputs(of).map((input) => [input.name, input]));
  const places = [...own.values()].filter((input) => input.is_argument && given[input.name]);
  const parts = places.map((input) => quoted(given[input.name]!));
  for (const [name, value] of Object.entries(given)) {
    if (value === "" || own.get(name)?.is_argument) continue;
    if (own.get(name)?.kind === "flag") parts.push(value === "false" ? flag(`no_${name}`) : flag(name));
    else parts.push(`${flag(name)} ${quoted(value)}`);
  }
  return ["datahall", of.name, ...parts].join(" ");
}
