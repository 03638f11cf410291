import type { Form as Shape, Given, Input, Wrong } from "../ask/shapes";
import { Field } from "./Field";

interface Props {
  of: Shape;
  given: Given;
  first: string[]; // inputs that stand at the top, whatever section they are of
  wrong: Wrong | null;
  change: (name: string, value: string) => void;
}

// The inputs of a verb, as they were declared: those that are asked most on top, all others behind a line.
export function Form({ of, given, first, wrong, change }: Props): preact.JSX.Element {
  const found = wrongs(wrong);
  const all = of.parts.filter((part) => !part.is_inline);
  const top = first.flatMap((name) => all.flatMap((part) => part.inputs.filter((input) => input.name === name)));
  const rest = all
    .map((part) => ({ ...part, inputs: part.inputs.filter((input) => !first.includes(input.name)).sort(rareLast) }))
    .filter((part) => part.inputs.length);
  const field = (input: (typeof top)[number]): preact.JSX.Element => (
    <Field key={input.name} verb={of.name} input={input} value={given[input.name] ?? ""} wrong={found[input.name]}
      change={(value) => change(input.name, value)} />
  );
  const said = rest.some((part) => part.inputs.some((input) => given[input.name]));
  return (
    <form onSubmit={(event) => event.preventDefault()} aria-label={of.name}>
      <fieldset>{top.map(field)}</fieldset>
      {rest.length > 0 && (
        <details class="more" open={said}>
          <summary>everything else that can be said</summary>
          {rest.map((part) => (
            <fieldset key={part.name}>
              <legend title={part.about}>{part.name || "question"}</legend>
              {part.inputs.map(field)}
            </fieldset>
          ))}
        </details>
      )}
    </form>
  );
}

const rareLast = (one: Input, other: Input): number => Number(one.is_rare ?? false) - Number(other.is_rare ?? false);

// What is wrong, by the input that it is about.
function wrongs(wrong: Wrong | null): Record<string, string> {
  if (!wrong) return {};
  const found: Record<string, string> = {};
  for (const problem of wrong.problems ?? []) found[problem.where] = [problem.message, problem.hint].filter(Boolean).join("; ");
  if (wrong.field) found[wrong.field] = [wrong.message, wrong.hint].filter(Boolean).join("; ");
  return found;
}
