import { useState } from "preact/hooks";
import type { Figure } from "../ask/shapes";

// A figure over its parts, down to inputs, facts with a source, fits and assumptions; parts are drawn when opened.
export function Chain({ figure, open = 0 }: { figure: Figure; open?: number }): preact.JSX.Element {
  const [opened, setOpened] = useState(open > 0);
  if (!figure.parts.length) return <div class="leaf"><Line figure={figure} /></div>;
  return (
    <details open={opened} onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary><Line figure={figure} /></summary>
      {opened && figure.parts.map((part, index) => <Chain key={index} figure={part} open={open - 1} />)}
    </details>
  );
}

function Line({ figure }: { figure: Figure }): preact.JSX.Element {
  return (
    <>
      {figure.name} <b>{figure.text}</b>
      {figure.formula && <span class="formula"> = {figure.formula}</span>}
      {(figure.marks.length > 0 || figure.sources.length > 0) && (
        <span class="rest">
          {" "}{figure.marks.join(", ")}{figure.marks.length > 0 && figure.sources.length > 0 ? ", " : ""}
          {figure.sources.map((source) => <a key={source} href={`#source-${source}`} onClick={jump}>[{source}]</a>)}
        </span>
      )}
    </>
  );
}

// To a source of the same page; the address is where the question is.
export function jump(event: MouseEvent): void {
  event.preventDefault();
  const id = (event.currentTarget as HTMLAnchorElement).getAttribute("href")!.slice(1);
  document.getElementById(id)?.scrollIntoView({ block: "center" });
}
