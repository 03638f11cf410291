import { useEffect, useRef, useState } from "preact/hooks";
import { ask, Refusal, type Asking } from "./api";
import type { Answer, Wrong } from "./shapes";

export interface Standing {
  answer: Answer | null; // the last there was
  wrong: Wrong | null;
  asking: boolean;
  said: string; // how far it is
  tookMs: number;
}

// The answer to what is asked now: what is asked no more is ended, and the last answer stays until the next is there.
export function useAnswer(asking: Asking | null, waitMs = 120): Standing {
  const [standing, setStanding] = useState<Standing>({ answer: null, wrong: null, asking: false, said: "", tookMs: 0 });
  const key = asking ? JSON.stringify(asking) : "";
  const first = useRef(true);
  useEffect(() => {
    if (!asking) return;
    const ending = new AbortController();
    const begin = async (): Promise<void> => {
      const start = performance.now();
      setStanding((now) => ({ ...now, asking: true, said: "" }));
      try {
        const answer = await ask(asking, ending.signal, (said) => setStanding((now) => ({ ...now, said })));
        setStanding({ answer, wrong: null, asking: false, said: "", tookMs: performance.now() - start });
      } catch (error) {
        if (ending.signal.aborted) return;
        const wrong = error instanceof Refusal ? error.wrong : { code: "page", message: String(error) };
        setStanding((now) => ({ ...now, wrong, asking: false, said: "" }));
      }
    };
    const timer = setTimeout(() => void begin(), first.current ? 0 : waitMs);
    first.current = false;
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [key]);
  return standing;
}
