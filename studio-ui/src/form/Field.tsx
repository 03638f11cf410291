import { useEffect, useId, useState } from "preact/hooks";
import { names } from "../ask/api";
import type { Input } from "../ask/shapes";
import { SLIDERS, type Slider } from "./sliders";

interface Props {
  verb: string;
  input: Input;
  value: string;
  wrong: string | undefined;
  change: (value: string) => void;
}

export function Field({ verb, input, value, wrong, change }: Props): preact.JSX.Element {
  const slider = value ? SLIDERS[input.name] : undefined;
  const id = useId();
  const [options, setOptions] = useState<string[]>(input.words ?? []);
  const [typed, setTyped] = useState<string | null>(null); // what is being typed, which nothing that arrives meanwhile replaces
  useEffect(() => {
    if (input.words?.length) setOptions(input.words);
  }, [input]);
  const ask = (): void => {
    if (input.names && !options.length) void names(verb, input.name).then(setOptions, () => undefined);
  };
  const label = input.name.replaceAll("_", " ");
  if (input.kind === "flag")
    return (
      <div class="field">
        <label for={id} title={input.help}>{label}</label>
        <input id={id} type="checkbox" checked={(value || input.default) === "true"} title={input.help}
          onChange={(event) => change(event.currentTarget.checked ? "true" : "")} />
      </div>
    );
  const closed = Boolean(input.words?.length) && !input.listed;
  return (
    <div class={`field${wrong ? " bad" : ""}`}>
      <label for={id} title={input.help}>{label}</label>
      {closed ? (
        <select id={id} value={value} title={input.help} onChange={(event) => change(event.currentTarget.value)}>
          <option value="">{input.default || "–"}</option>
          {options.map((word) => <option key={word} value={word}>{word}</option>)}
        </select>
      ) : (
        <input id={id} type="text" value={typed ?? value} title={input.help} spellcheck={false} autocomplete="off"
          placeholder={input.default || input.example || input.placeholder} list={options.length ? `${id}-names` : undefined}
          aria-required={input.is_required} aria-invalid={wrong ? "true" : undefined} aria-describedby={wrong ? `${id}-wrong` : undefined}
          onFocus={ask} onInput={(event) => setTyped(event.currentTarget.value)} onBlur={() => setTyped(null)}
          onChange={(event) => {
            setTyped(null);
            change(event.currentTarget.value.trim());
          }} />
      )}
      {options.length > 0 && !closed && (
        <datalist id={`${id}-names`}>{offered(options, value, input.listed).map((word) => <option key={word} value={word} />)}</datalist>
      )}
      {slider && <Range label={label} slider={slider} value={value} change={change} />}
      {wrong && <p class="wrong" id={`${id}-wrong`}>{wrong}</p>}
    </div>
  );
}

// Of a list, what may follow what is there.
function offered(options: string[], value: string, listed: boolean | undefined): string[] {
  if (!listed) return options;
  const head = value.split(",").slice(0, -1);
  return options.filter((word) => !head.includes(word)).map((word) => [...head, word].join(","));
}

const STEPS = 400;
const LARGER: Record<string, number> = { k: 1e3, M: 1e6, B: 1e9, G: 1e9, T: 1e12, "%": 0.01 };
const TIME_MS: Record<string, number> = { us: 1e-3, "µs": 1e-3, ms: 1, s: 1e3, min: 6e4, h: 3.6e6 };

// The number that a person wrote, in the unit of the slider, to place its knob; what is meant, the server decides.
function read(value: string, unit?: string): number | null {
  const found = /^([\d,.]+(?:e[-+]?\d+)?)\s*(.*)$/i.exec(value.trim());
  const number = found ? Number(found[1]!.replaceAll(",", "")) : NaN;
  if (!Number.isFinite(number)) return null;
  const word = found![2]!;
  if (word === (unit ?? "")) return number;
  if (unit && unit in TIME_MS) return word in TIME_MS ? (number * TIME_MS[word]!) / TIME_MS[unit]! : null;
  return word in LARGER ? number * LARGER[word]! : null;
}

function Range({ label, slider, value, change }: { label: string; slider: Slider; value: string; change: (value: string) => void }): preact.JSX.Element {
  const number = read(value, slider.unit) ?? slider.start;
  const along = slider.by === "factor"
    ? Math.log(number / slider.from) / Math.log(slider.to / slider.from)
    : (number - slider.from) / (slider.to - slider.from);
  const there = (share: number): string => {
    const raw = slider.by === "factor" ? slider.from * (slider.to / slider.from) ** share : slider.from + share * (slider.to - slider.from);
    const rounded = slider.step ? Math.round(raw / slider.step) * slider.step : Number(raw.toPrecision(2));
    return `${rounded}${slider.unit ?? ""}`;
  };
  return (
    <input type="range" min={0} max={STEPS} value={Math.round(Math.min(1, Math.max(0, along)) * STEPS)} aria-label={`${label}, as a slider`}
      aria-valuetext={value || there(along)} onInput={(event) => change(there(Number(event.currentTarget.value) / STEPS))} />
  );
}
