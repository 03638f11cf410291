// Where the page is, in the address: a view, and what is given to it, as flags of the command line have it.
//
//   #/plan?verb=plan+serve&model=llama-3.1-70b&users=10000

import { useEffect, useState } from "preact/hooks";
import type { Given } from "./ask/shapes";

export interface Route {
  view: string;
  given: Given;
}

export function written(route: Route): string {
  const said = new URLSearchParams(Object.entries(route.given).filter(([, value]) => value !== ""));
  const query = said.toString().replaceAll("%2C", ",").replaceAll("%2F", "/").replaceAll("%3A", ":");
  return `#/${route.view}${query ? `?${query}` : ""}`;
}

export function readRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: path || "plan", given: Object.fromEntries(new URLSearchParams(query)) };
}

export function go(route: Route, replace = false): void {
  if (replace) {
    history.replaceState(null, "", written(route));
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = written(route);
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => readRoute(location.hash));
  useEffect(() => {
    const moved = (): void => setRoute(readRoute(location.hash));
    window.addEventListener("hashchange", moved);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  return route;
}
