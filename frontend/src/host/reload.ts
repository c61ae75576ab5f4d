/**
 * TensorBoard tells plugins of its reload button over a MessageChannel: the plugin hands it one port, and every message
 * is JSON text `{type, id, payload, error, isReply}` that wants a reply of the same form. TensorBoard's own guest library
 * is not on npm; this is the part of the protocol that the tab needs.
 */
const BOOTSTRAP = "experimental.bootstrap";
const DATA_RELOADED = "experimental.DataReloaded";

interface Message {
  type: string;
  id: number;
  payload: unknown;
  error: string | null;
  isReply: boolean;
}

/** Calls `reload` whenever TensorBoard has reloaded its data. */
export function onReload(host: Window, reload: () => void): void {
  if (host === window) {
    return;
  }
  const { port1, port2 } = new MessageChannel();
  port1.addEventListener("message", (event: MessageEvent<string>) => {
    const message = JSON.parse(event.data) as Message;
    if (message.isReply) {
      return;
    }
    if (message.type === DATA_RELOADED) {
      reload();
    }
    // TensorBoard waits for an answer to everything it says.
    const reply: Message = { type: message.type, id: message.id, payload: null, error: null, isReply: true };
    port1.postMessage(JSON.stringify(reply));
  });
  port1.start();
  host.postMessage(BOOTSTRAP, host.location.origin, [port2]);
}
