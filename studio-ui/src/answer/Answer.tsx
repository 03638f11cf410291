import { useEffect, useState } from "preact/hooks";
import { question } from "../ask/command";
import type { Answer as Shape, Chart as ChartShape } from "../ask/shapes";
import { written } from "../route";
import { viewOf } from "../views/ways";
import { Chain } from "./Chain";
import { Table } from "./Table";

// An answer with everything behind it, in the order of the report.
export function Answer({ answer, stale, children }: { answer: Shape; stale?: boolean; children?: preact.ComponentChildren }): preact.JSX.Element {
  return (
    <article class={`answer${stale ? " stale" : ""}`} aria-busy={stale}>
      <p class="kicker">{[answer.kind, ...answer.asked.map((said) => `${said.name} ${said.text}`)].join(" · ")}</p>
      {answer.verdict === "no" && !answer.headline.startsWith("No") && <p class="no">The answer is no.</p>}
      <h2 class="headline">{answer.headline}</h2>
      {answer.binding && <p class="binding">{answer.binding}</p>}
      {children}
      <div class="two">{answer.charts.map((chart) => <Chart key={chart.title} chart={chart} />)}</div>
      {answer.tables.map((table) => <Table key={table.title} table={table} />)}
      {answer.figures.length > 0 && (
        <section>
          <h3>how it adds up</h3>
          <div class="tree">{answer.figures.map((figure, index) => <Chain key={`${index}${figure.name}`} figure={figure} open={index === 0 ? 1 : 0} />)}</div>
        </section>
      )}
      {answer.defaults.length > 0 && (
        <section><h3>by default</h3><p class="note">{answer.defaults.map((said) => `${said.name} ${said.text}`).join(" · ")}</p></section>
      )}
      {answer.notes.length > 0 && <section><h3>notes</h3><ul class="notes">{answer.notes.map((note) => <li key={note}>{note}</li>)}</ul></section>}
      {answer.citations.length > 0 && (
        <section>
          <h3>sources</h3>
          <ol>{answer.citations.map(({ number, source }) => <li key={number} id={`source-${number}`}>{source.title}, {source.date}, {source.kind}</li>)}</ol>
        </section>
      )}
      {answer.next.length > 0 && <section><h3>next</h3><ul class="next">{answer.next.map((line) => <Next key={line} line={line} />)}</ul></section>}
    </article>
  );
}

export function Chart({ chart }: { chart: ChartShape }): preact.JSX.Element {
  return (
    <section>
      <h3>{chart.title}</h3>
      <figure>
        <div class="scroll" dangerouslySetInnerHTML={{ __html: chart.svg }} />
        {chart.note && <figcaption>{chart.note}</figcaption>}
      </figure>
    </section>
  );
}

// A command to go on with: a link where the page can ask it.
function Next({ line }: { line: string }): preact.JSX.Element {
  const [there, setThere] = useState("");
  useEffect(() => {
    let left = false;
    void question(line).then((found) => {
      if (found && !left) setThere(written({ view: viewOf(found.verb), given: { verb: found.verb, ...found.given } }));
    }, () => undefined);
    return () => {
      left = true;
    };
  }, [line]);
  return <li>{there ? <a href={there}>{line}</a> : line}</li>;
}
