import { describe, expect, it, vi } from "vitest";
import { joined, parted, START } from "../model/place";
import { Address, isOnTab, readPlace, writePlace } from "./address";

describe("readPlace", () => {
  it("reads TensorBoard's form of deep links", () => {
    expect(readPlace("#memest&p.memest.run=sub%20dir%2Fa%2Bb&p.memest.limit=9.29GiB&p.memest.unit=MiB")).toEqual({
      ...START,
      run: "sub dir/a+b",
      limit: "9.29GiB",
      unit: "MiB",
    });
  });

  it("takes what is missing or no unit for the default", () => {
    expect(readPlace("")).toEqual(START);
    expect(readPlace("#memest&p.memest.unit=parsec&p.other.run=x")).toEqual(START);
  });

  it("does not stumble over broken escapes", () => {
    expect(readPlace("#memest&p.memest.run=100%").run).toBe("100%");
  });
});

describe("writePlace", () => {
  it("is read back equal, whatever the run's name", () => {
    for (const run of ["a", "sub dir/a+b&c=d", "100%", "ß#x", "."]) {
      const place = { ...START, run, compare: joined(["x,y", run]), limit: "24 GB", unit: "B" as const };
      expect(readPlace(writePlace("#memest", place))).toEqual(place);
      expect(parted(place.compare)).toEqual(["x,y", run]);
    }
  });

  it("leaves everything else in the address as it was, and defaults out", () => {
    const place = { ...START, run: "r" };
    expect(writePlace("#memest&tagFilter=a%20b&p.memest.run=old&p.memest.limit=1GiB&p.x.run=y", place)).toBe(
      "#memest&tagFilter=a%20b&p.x.run=y&p.memest.run=r",
    );
    expect(writePlace("", place)).toBe("#memest&p.memest.run=r");
  });
});

describe("Address", () => {
  it("does not write while another tab is on show", () => {
    expect(isOnTab("#memest&p.memest.run=a")).toBe(true);
    expect(isOnTab("")).toBe(true);
    expect(isOnTab("#scalars")).toBe(false);
    window.location.hash = "#scalars";
    const address = new Address(window);
    address.write({ ...START, run: "r" });
    expect(window.location.hash).toBe("#scalars");
    window.location.hash = "#memest";
    const entries = window.history.length;
    address.write({ ...START, run: "r" });
    expect(window.location.hash).toBe("#memest&p.memest.run=r");
    expect(window.history.length).toBe(entries);
  });

  it("follows changes that lead to this tab", () => {
    const follow = vi.fn();
    new Address(window).watch(follow);
    window.history.replaceState(null, "", "#scalars&p.memest.run=x");
    window.dispatchEvent(new Event("hashchange"));
    expect(follow).not.toHaveBeenCalled();
    window.history.replaceState(null, "", "#memest&p.memest.run=x");
    window.dispatchEvent(new Event("hashchange"));
    expect(follow).toHaveBeenCalledWith({ ...START, run: "x" });
  });
});
