/** Hands a person a file. The address of its content is of this page's own, which TensorBoard's policy allows. */
export function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser takes the content after this turn.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A name for a file about a run, without what file systems do not like. */
export function fileName(run: string, what: string, ending: string): string {
  return `${[run, what].map((part) => part.replace(/[^\w.-]+/g, "-")).join("-")}.${ending}`;
}
