"""The page that stands in for a frontend that was not built: it says so, and what data there is.

A text in Python and not a file beside the others, so that it is there when files are not.
"""

MODULE = """\
// The Memory tab of an installation without its frontend.
const COLORS = { light: ["#ffffff", "#212121", "#616161"], dark: ["#303030", "#eeeeee", "#bdbdbd"] };

function element(name, text, parent) {
  const made = document.createElement(name);
  made.textContent = text;
  parent.append(made);
  return made;
}

// TensorBoard tells its plugins of dark mode by nothing but a class of the page around them.
function followTheme() {
  const outer = window.parent.document.body;
  const paint = () => {
    const [background, text, quiet] = COLORS[outer.classList.contains("dark-mode") ? "dark" : "light"];
    document.documentElement.style.background = background;
    document.body.style.color = text;
    document.body.style.setProperty("--quiet", quiet);
  };
  paint();
  new MutationObserver(paint).observe(outer, { attributes: true, attributeFilter: ["class"] });
}

function describe(run) {
  const parts = [];
  if (run.peak_bytes !== null) parts.push(`predicted peak ${run.peak_bytes} bytes`);
  if (run.measured_peak_bytes !== null) parts.push(`measured peak ${run.measured_peak_bytes} bytes`);
  return `${run.name}: ${[...parts, ...run.problems].join("; ") || "nothing estimated or measured yet"}`;
}

async function showData(page) {
  const status = element("p", "Looking for data …", page);
  try {
    const answer = await (await fetch(new URL("./runs", import.meta.url))).json();
    if (answer.error) throw new Error(answer.error);
    const count = answer.runs.length;
    status.textContent = count
      ? `The data is there all the same: ${count} ${count === 1 ? "run holds" : "runs hold"} records of memest.`
      : "No run holds records of memest yet.";
    const list = element("ul", "", page);
    for (const run of answer.runs) element("li", describe(run), list);
  } catch (error) {
    status.textContent = `The data could not be asked for: ${error.message}`;
  }
}

export async function render() {
  document.title = "Memory";
  Object.assign(document.body.style, { font: "16px/1.5 system-ui, sans-serif", margin: "2rem", maxWidth: "50rem" });
  followTheme();
  const page = element("main", "", document.body);
  element("h1", "The page of this tab was not built", page).style.fontSize = "1.5rem";
  element("p", "memest is installed without its frontend: static/index.js is missing from its package.", page);
  element("p", "In a checkout of memest's sources, run one of these, then start TensorBoard again:", page);
  element("pre", "pip install .\\nmake frontend", page);
  const why = element("p", "Both build it; the first also installs it with the package.", page);
  why.style.color = "var(--quiet)";
  await showData(page);
}
"""
