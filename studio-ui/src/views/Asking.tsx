import { useEffect, useState } from "preact/hooks";
import { Answer } from "../answer/Answer";
import { form } from "../ask/api";
import type { Form as Shape, Given } from "../ask/shapes";
import { useAnswer } from "../ask/useAnswer";
import { Form } from "../form/Form";
import { Saved } from "../parts/Saved";
import { Standing } from "../parts/Standing";
import { go } from "../route";
import { asked } from "./asked";
import type { Way } from "./ways";

// A question of a view: its form on the left, its answer on the right, both in the address.
export function Asking({ way, given }: { way: Way; given: Given }): preact.JSX.Element {
  const verb = given.verb && way.verbs.includes(given.verb) ? given.verb : way.verbs[0]!;
  const usual = asked(verb);
  const { verb: _, ...said } = given;
  const own = Object.keys(said).length ? said : usual.given;
  const [of, setOf] = useState<Shape | null>(null);
  useEffect(() => {
    setOf(null);
    void form(verb).then(setOf);
  }, [verb]);
  const standing = useAnswer({ verb, given: own });
  const fits = standing.answer?.verb === verb;
  const change = (name: string, value: string): void => {
    const next = { ...own, [name]: value };
    if (!value) delete next[name];
    go({ view: way.view, given: { verb, ...next } }, true);
  };
  return (
    <>
      {way.verbs.length > 1 && (
        <nav class="actions" aria-label={`questions of ${way.name}`} style={{ marginBottom: "1rem" }}>
          {way.verbs.map((one) => (
            <button key={one} type="button" class="plain" aria-pressed={one === verb} onClick={() => go({ view: way.view, given: { verb: one } })}>{one}</button>
          ))}
        </nav>
      )}
      <div class="sides">
        <div class="asked">{of?.name === verb && <Form of={of} given={own} first={usual.first} sliders={usual.sliders} wrong={standing.wrong} change={change} />}</div>
        <div>
          <Standing standing={standing} />
          {standing.answer && fits && <Answer answer={standing.answer} stale={standing.asking || Boolean(standing.wrong)} />}
          {of?.name === verb && standing.answer && fits && !standing.wrong && <Saved of={of} given={own} />}
        </div>
      </div>
    </>
  );
}
