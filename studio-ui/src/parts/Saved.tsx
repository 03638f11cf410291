import { useState } from "preact/hooks";
import { file, Refusal, type Asking } from "../ask/api";
import { line } from "../ask/command";
import type { Form, Given } from "../ask/shapes";

// What can be taken along: the address, the command, and the answer as a file.
export function Saved({ of, given }: { of: Form; given: Given }): preact.JSX.Element {
  const [said, setSaid] = useState("");
  const copied = async (text: string, what: string): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setSaid(`${what} copied`);
  };
  const saved = async (shape: NonNullable<Asking["shape"]>, name: string, artefact = ""): Promise<void> => {
    try {
      const blob = await file({ verb: of.name, given, shape, name: artefact });
      const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      setSaid(`${name} saved`);
    } catch (error) {
      setSaid(error instanceof Refusal ? error.message : String(error));
    }
  };
  const stem = of.name.replaceAll(" ", "-");
  return (
    <div class="actions">
      <button type="button" class="plain" onClick={() => void copied(location.href, "link")}>copy link</button>
      <button type="button" class="plain" onClick={() => void copied(line(of, given), "command")}>copy command</button>
      <button type="button" class="plain" onClick={() => void saved("html", `${stem}.html`)}>report</button>
      <button type="button" class="plain" onClick={() => void saved("json", `${stem}.json`)}>JSON</button>
      {of.is_traced && <button type="button" class="plain" onClick={() => void saved("trace", `${stem}.perfetto-trace`)}>trace</button>}
      {of.artefacts.length > 0 && (
        <select class="plain" value="" aria-label="a file that runs it"
          onChange={(event) => void saved("artefact", event.currentTarget.value, event.currentTarget.value)}>
          <option value="">run it with …</option>
          {of.artefacts.map((name) => <option key={name}>{name}</option>)}
        </select>
      )}
      <span class="note" role="status">{said}</span>
    </div>
  );
}
