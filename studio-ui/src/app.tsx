import { go, useRoute } from "./route";
import { Asking } from "./views/Asking";
import { WAYS } from "./views/ways";

export function App(): preact.JSX.Element {
  const route = useRoute();
  const way = WAYS.find((one) => one.view === route.view) ?? WAYS[0]!;
  return (
    <>
      <a class="skip" href="#view" onClick={(event) => { event.preventDefault(); document.getElementById("view")?.focus(); }}>to the answer</a>
      <nav class="ways" aria-label="views">
        <a class="name" href="#/plan"><img src="./mark.svg" alt="" />Datahall</a>
        <ul>
          {WAYS.map((one) => (
            <li key={one.view}>
              <a href={`#/${one.view}`} aria-current={one === way ? "page" : undefined} title={one.about}
                onClick={(event) => { event.preventDefault(); go({ view: one.view, given: {} }); }}>{one.name}</a>
            </li>
          ))}
        </ul>
        <footer>nothing leaves this machine</footer>
      </nav>
      <main class="view" id="view" tabindex={-1}>
        <header><h1>{way.name}</h1><p>{way.about}</p></header>
        <Asking key={way.view} way={way} given={route.given} />
      </main>
    </>
  );
}
