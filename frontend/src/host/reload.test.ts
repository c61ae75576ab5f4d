import { expect, it, vi } from "vitest";
import { onReload } from "./reload";

/** TensorBoard's side: takes the port that the plugin sends and talks over it. */
function tensorboard(): { host: Window; bootstrap: () => [string, MessagePort] } {
  const posted: [string, MessagePort][] = [];
  const host = {
    location: { origin: "http://localhost:6006" },
    postMessage: (message: string, _origin: string, ports: MessagePort[]) => posted.push([message, ports[0]!]),
  };
  return { host: host as unknown as Window, bootstrap: () => posted[0]! };
}

it("reloads on TensorBoard's word, and answers every message", async () => {
  const reload = vi.fn();
  const { host, bootstrap } = tensorboard();
  onReload(host, reload);
  const [message, port] = bootstrap();
  expect(message).toBe("experimental.bootstrap");

  const replies: unknown[] = [];
  port.onmessage = (event: MessageEvent<string>) => replies.push(JSON.parse(event.data));
  const say = (type: string, id: number, isReply = false): void =>
    port.postMessage(JSON.stringify({ type, id, payload: null, error: null, isReply }));
  say("experimental.RunsChanged", 0);
  say("experimental.DataReloaded", 1);
  say("experimental.DataReloaded", 2, true);
  await vi.waitFor(() => expect(replies).toHaveLength(2));
  expect(replies).toEqual([
    { type: "experimental.RunsChanged", id: 0, payload: null, error: null, isReply: true },
    { type: "experimental.DataReloaded", id: 1, payload: null, error: null, isReply: true },
  ]);
  expect(reload).toHaveBeenCalledTimes(1);
  port.close();
});

it("stays silent where there is no TensorBoard around", () => {
  const post = vi.spyOn(window, "postMessage");
  onReload(window, () => undefined);
  expect(post).not.toHaveBeenCalled();
});
