/** XProf's memory profile of a session, in the same TensorBoard; XProf takes both from the query. */
export function xprofAddress(host: Window, session: string): string {
  const query = new URLSearchParams({ run: session, tag: "memory_profile" });
  return `${host.location.pathname}?${query.toString()}#profile`;
}
