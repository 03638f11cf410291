import type { Answer, Form, Forms, Given, Wrong } from "./shapes";

// A question that has no answer: what is wrong, where, and what to do.
export class Refusal extends Error {
  constructor(readonly wrong: Wrong) {
    super(wrong.message);
  }
}

const known = new Map<string, Promise<unknown>>();

// What never changes while the studio runs is asked once.
function once<T>(path: string): Promise<T> {
  let found = known.get(path) as Promise<T> | undefined;
  if (!found) {
    found = read<T>(path).catch((error: unknown) => {
      known.delete(path);
      throw error;
    });
    known.set(path, found);
  }
  return found;
}

async function read<T>(path: string): Promise<T> {
  return body<T>(await reached(fetch(path)));
}

async function reached(asking: Promise<Response>): Promise<Response> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refusal({ code: "away", message: "the studio does not answer", hint: "is datahall studio still running?" });
  }
}

async function body<T>(response: Response): Promise<T> {
  const said = (await response.json()) as T & { error?: Wrong };
  if (said.error) throw new Refusal(said.error);
  return said;
}

export const forms = (): Promise<Forms> => once("/api/forms");
export const form = (verb: string): Promise<Form> => once(`/api/forms/${encodeURIComponent(verb)}`);
export const names = (verb: string, input: string): Promise<string[]> =>
  once(`/api/forms/${encodeURIComponent(verb)}/${encodeURIComponent(input)}`);

export interface Asking {
  verb: string;
  given: Given;
  shape?: "page" | "json" | "html" | "md" | "csv" | "trace" | "artefact";
  name?: string;
}

function posted(asking: Asking, accept: string, signal?: AbortSignal): Promise<Response> {
  return reached(
    fetch("/api/ask", {
      method: "POST",
      headers: { "content-type": "application/json", accept },
      body: JSON.stringify(asking),
      ...(signal ? { signal } : {}),
    }),
  );
}

// An answer, and on the way to it how far it is; a signal that is aborted ends the work.
export async function ask(asking: Asking, signal?: AbortSignal, told?: (said: string) => void): Promise<Answer> {
  const response = await posted(asking, "text/event-stream", signal);
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return body<Answer>(response);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    held += value ?? "";
    const events = held.split("\n\n");
    held = events.pop() ?? "";
    for (const event of events) {
      const lines = event.split("\n");
      const name = lines.find((line) => line.startsWith("event: "))?.slice(7);
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      const said: unknown = JSON.parse(data);
      if (name === "answer") return said as Answer;
      if (name === "refused") throw new Refusal((said as { error: Wrong }).error);
      told?.((said as { said: string }).said);
    }
    if (done) throw new Refusal({ code: "away", message: "the answer was broken off" });
  }
}

// An answer as a file.
export async function file(asking: Asking): Promise<Blob> {
  const response = await posted(asking, "*/*");
  if (!response.ok || (response.headers.get("content-type") === "application/json" && asking.shape !== "json"))
    await body(response);
  return response.blob();
}
