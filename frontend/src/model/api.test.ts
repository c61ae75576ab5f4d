import { describe, expect, it } from "vitest";
import { ApiError, httpApi } from "./api";

const BASE = "http://localhost:6006/prefix/data/plugin/memest/index.js";

function answering(body: string, status = 200): { asked: string[]; fetcher: typeof fetch } {
  const asked: string[] = [];
  const fetcher: typeof fetch = (url) => {
    asked.push(url instanceof URL ? url.href : "no URL");
    return Promise.resolve(new Response(body, { status }));
  };
  return { asked, fetcher };
}

describe("httpApi", () => {
  it("asks beside the module, under whatever prefix, with every name escaped", async () => {
    const { asked, fetcher } = answering('{"runs": []}');
    const api = httpApi(BASE, fetcher);
    expect(await api.runs()).toEqual([]);
    await api.overview("sub dir/a+b&c", "9.29GiB");
    await api.profile("r", "cpu_bfc@host/1", null);
    await api.timeline("r", "step", [0, 70]);
    await api.moment("r", { phase: "step", at: 0 }, "shape");
    expect(asked).toEqual([
      "http://localhost:6006/prefix/data/plugin/memest/runs",
      "http://localhost:6006/prefix/data/plugin/memest/overview?run=sub+dir%2Fa%2Bb%26c&limit=9.29GiB",
      "http://localhost:6006/prefix/data/plugin/memest/profile?run=r&id=cpu_bfc%40host%2F1",
      "http://localhost:6006/prefix/data/plugin/memest/timeline?run=r&phase=step&from=0&to=70",
      "http://localhost:6006/prefix/data/plugin/memest/moment?run=r&phase=step&at=0&by=shape",
    ]);
  });

  it("repeats a parameter for each of several runs", async () => {
    const { asked, fetcher } = answering("{}");
    await httpApi(BASE, fetcher).compare("a", ["b", "c d"], "");
    expect(asked).toEqual(["http://localhost:6006/prefix/data/plugin/memest/compare?run=a&with=b&with=c+d"]);
  });

  it("asks XProf's tab for its sessions only where there is one", async () => {
    const without = answering('{"memest": {}}');
    expect(await httpApi(BASE, without.fetcher).xprofSessions()).toEqual([]);
    expect(without.asked).toEqual(["http://localhost:6006/prefix/data/plugins_listing"]);
    const asked: string[] = [];
    const fetcher: typeof fetch = (url) => {
      asked.push((url as URL).pathname);
      return Promise.resolve(new Response(asked.length === 1 ? '{"profile": {}}' : '["run/2026_01_01"]'));
    };
    expect(await httpApi(BASE, fetcher).xprofSessions()).toEqual(["run/2026_01_01"]);
    expect(asked[1]).toBe("/prefix/data/plugin/profile/runs");
  });

  it("leaves an empty limit out: the recorded one is meant", async () => {
    const { asked, fetcher } = answering("{}");
    await httpApi(BASE, fetcher).overview("r", "");
    expect(asked).toEqual(["http://localhost:6006/prefix/data/plugin/memest/overview?run=r"]);
  });

  it("gives the server's own words for an error, with its status", async () => {
    const { fetcher } = answering('{"error": "no such run"}', 404);
    const error = await httpApi(BASE, fetcher)
      .overview("r", "")
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ message: "no such run", status: 404 });
  });

  it("names the request when the answer is not JSON", async () => {
    const { fetcher } = answering("<html>", 500);
    await expect(httpApi(BASE, fetcher).peaks("r")).rejects.toThrow('The request "peaks" failed with status 500.');
  });

  it("says that TensorBoard is gone when nothing answers", async () => {
    const api = httpApi(BASE, () => Promise.reject(new TypeError("fetch failed")));
    await expect(api.runs()).rejects.toThrow("TensorBoard does not answer");
  });
});
