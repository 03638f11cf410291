import { useEffect, useState } from "preact/hooks";
import { Answer } from "../answer/Answer";
import { form } from "../ask/api";
import { example, first } from "../ask/command";
import type { Form as Shape, Given } from "../ask/shapes";
import { useAnswer } from "../ask/useAnswer";
import { Form } from "../form/Form";
import { Saved } from "../parts/Saved";
import { Standing } from "../parts/Standing";
import { go } from "../route";
import type { Way } from "./ways";

interface Known {
  form: Shape;
  example: Given;
  first: string[];
}

async function known(verb: string): Promise<Known> {
  const found = await form(verb);
  return { form: found, example: await example(found), first: await first(found) };
}

// A question of a view: its form on the left, its answer on the right, both in the address.
export function Asking({ way, given }: { way: Way; given: Given }): preact.JSX.Element {
  const verb = given.verb && way.verbs.includes(given.verb) ? given.verb : way.verbs[0]!;
  const { verb: _, ...said } = given;
  const [of, setOf] = useState<Known | null>(null);
  useEffect(() => {
    let left = false;
    void known(verb).then((found) => !left && setOf(found));
    return () => {
      left = true;
    };
  }, [verb]);
  const there = of?.form.name === verb ? of : null;
  const own = Object.keys(said).length ? said : (there?.example ?? null);
  const standing = useAnswer(own && { verb, given: own });
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
        <div class="asked">{there && own && <Form of={there.form} given={own} first={there.first} wrong={standing.wrong} change={change} />}</div>
        <div>
          <Standing standing={standing} />
          {standing.answer && fits && <Answer answer={standing.answer} stale={standing.asking || Boolean(standing.wrong)} />}
          {there && own && standing.answer && fits && !standing.wrong && <Saved of={there.form} given={own} />}
        </div>
      </div>
    </>
  );
}
