import { httpApi, type Api } from "../src/model/api";
import type { Timeline } from "../src/model/types";

/** What the server answered: by route and parameters, as `tools/record.py` and `keyOf` write them. */
export type Answers = Readonly<Record<string, unknown>>;

const BASE = "http://recorded.invalid/data/plugin/memest/";
/** What of a curve is wanted; all of it is recorded. */
const STRETCH = ["from", "to"];

/** An Api that answers from recordings. What was not recorded is an error in words, as from the server. */
export function recordedApi(answers: Answers): Api {
  return httpApi(BASE, (url) => Promise.resolve(respond(answers, url as URL)));
}

/** `overview run=adam`: the route and its parameters in order. */
export function keyOf(route: string, parameters: Iterable<[string, string]> = []): string {
  return [route, ...[...parameters].map(([name, value]) => `${name}=${value}`).sort()].join(" ");
}

function respond(answers: Answers, url: URL): Response {
  const route = url.pathname.split("/").at(-1)!;
  if (route === "plugins_listing") {
    return json({});
  }
  const parameters = [...url.searchParams].filter(([name]) => !STRETCH.includes(name));
  const answer = answers[keyOf(route, parameters)];
  if (answer !== undefined) {
    return json(stretched(answer, url.searchParams));
  }
  const limit = url.searchParams.get("limit");
  return limit
    ? json({ error: `The recordings know no limit but their own, and not '${limit}'.` }, 400)
    : json({ error: `The recordings have no answer to "${keyOf(route, parameters)}".` }, 404);
}

/** The events from tick to tick of an answer that is a curve; any other as it is. */
function stretched(answer: unknown, parameters: URLSearchParams): unknown {
  if (!parameters.has("from")) {
    return answer;
  }
  const curve = answer as { timeline: Timeline };
  const [from, to] = STRETCH.map((name) => Number(parameters.get(name))) as [number, number];
  const { ticks, live_bytes, op_index, positions } = curve.timeline;
  const inside = ticks.flatMap((tick, n) => (tick >= from && tick <= to ? [n] : []));
  const only = (values: readonly number[]): number[] => inside.map((n) => values[n]!);
  return {
    ...curve,
    timeline: {
      ...curve.timeline,
      ticks: only(ticks),
      live_bytes: only(live_bytes),
      op_index: only(op_index),
      positions: only(positions),
    },
  };
}

function json(answer: unknown, status = 200): Response {
  return new Response(JSON.stringify(answer), { status });
}
