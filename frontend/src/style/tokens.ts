import { CATEGORIES } from "../model/types";
import { CARD, PALETTE } from "./palette";

/** Colours and sizes of the page as custom properties, which components inherit through their shadow roots. */
const SHARED = `
  --font: Roboto, system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif;
  --mono: "Roboto Mono", ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  --radius: 6px;
`;

const THEMES = {
  light: `
  color-scheme: light;
  --page: #f5f6f8;
  --card: ${CARD.light};
  --edge: #dfe3e8;
  --line: #edf0f3;
  --track: #e9ecf0;
  --hover: #f3f6fa;
  --code: #eff2f5;
  --ink: #1b2430;
  --soft: #556170;
  --accent: #2f5fa8;
  --accent-wash: #e6eefa;
  --limit: #b3261e;
  --bad: #b3261e;
  --warn: #8a5a00;
  --warn-wash: #fdf4e0;
  --good: #1a7349;
  --measured: #1b2430;
  --area: rgb(47 95 168 / 16%);
  --measured-area: rgb(85 97 112 / 16%);
  --band: rgb(85 97 112 / 7%);
  --shadow: 0 4px 14px rgb(20 30 45 / 16%);
`,
  dark: `
  color-scheme: dark;
  --page: #13171c;
  --card: ${CARD.dark};
  --edge: #303842;
  --line: #28303a;
  --track: #2a323c;
  --hover: #232a33;
  --code: #28303a;
  --ink: #e6eaef;
  --soft: #9dabba;
  --accent: #7ba7e8;
  --accent-wash: #22334d;
  --limit: #ff8478;
  --bad: #ff8478;
  --warn: #f0bd5e;
  --warn-wash: #3a2f17;
  --good: #5fcf98;
  --measured: #e6eaef;
  --area: rgb(123 167 232 / 20%);
  --measured-area: rgb(157 171 186 / 20%);
  --band: rgb(157 171 186 / 8%);
  --shadow: 0 4px 16px rgb(0 0 0 / 55%);
`,
};

function categories(theme: "light" | "dark"): string {
  return CATEGORIES.map((category) => `  --category-${category}: ${PALETTE[theme][category]};`).join("\n");
}

export const TOKENS = `
:root { ${SHARED} }
:root, :root[data-theme="light"] { ${THEMES.light}
${categories("light")} }
:root[data-theme="dark"] { ${THEMES.dark}
${categories("dark")} }
html { background: var(--page); }
body { margin: 0; }
`;
