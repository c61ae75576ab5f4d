import type { Estimate } from "../model/types";

/** The measured device that an estimate is about: the first of its kind; the first of all where there is no estimate. */
export function deviceOf<D extends { device: string }>(
  estimate: Estimate | null,
  devices: readonly D[],
): D | undefined {
  const kind = estimate?.subject.device;
  return kind === undefined ? devices[0] : devices.find(({ device }) => device.split(":")[0] === kind);
}
