import { expect, it } from "vitest";
import { xprofAddress } from "./xprof";

it("leads to XProf under the same prefix", () => {
  const host = { location: { pathname: "/some/where/" } } as Window;
  expect(xprofAddress(host, "sub dir/run/2026_01_01")).toBe(
    "/some/where/?run=sub+dir%2Frun%2F2026_01_01&tag=memory_profile#profile",
  );
});
