/** A copy of what `drawn` shows on the ground of the card that it stands in: by itself it is transparent. */
export function onCard(drawn: HTMLCanvasElement): HTMLCanvasElement {
  const picture = document.createElement("canvas");
  picture.width = drawn.width;
  picture.height = drawn.height;
  const context = picture.getContext("2d")!;
  context.fillStyle = getComputedStyle(drawn).getPropertyValue("--card");
  context.fillRect(0, 0, picture.width, picture.height);
  context.drawImage(drawn, 0, 0);
  return picture;
}
