import type { Standing as Shape } from "../ask/useAnswer";

// How the question stands: being answered, answered in so long, or refused.
export function Standing({ standing }: { standing: Shape }): preact.JSX.Element {
  const { wrong, asking, said, tookMs } = standing;
  return (
    <>
      <p class="standing" role="status">
        {asking ? <><span class="bar" aria-hidden="true" />{said || "computing"}</> : tookMs > 0 && !wrong ? `answered in ${tookMs < 995 ? `${tookMs.toFixed(0)} ms` : `${(tookMs / 1000).toFixed(1)} s`}` : ""}
      </p>
      {wrong && !asking && (
        <div class="refusal" role="alert">
          <p>{wrong.where && !wrong.problems?.length ? <b>{wrong.where}: </b> : null}{wrong.message}</p>
          {wrong.problems?.map((problem) => <p key={problem.where + problem.message}><b>{problem.where}</b>: {problem.message}{problem.hint && <span class="hint"> {problem.hint}</span>}</p>)}
          {wrong.hint && <p class="hint">{wrong.hint}</p>}
        </div>
      )}
    </>
  );
}
