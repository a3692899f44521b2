// Formulas to HTML: a line of JSON in, {"tex", "display"}, a line of JSON out, {"html"} or {"error"}.
// Usage: node formulas.js KATEX, the path of katex.min.js.
const katex = require(process.argv[2]);
const lines = require("readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { tex, display } = JSON.parse(line);
  let answer;
  try {
    answer = { html: katex.renderToString(tex, { displayMode: display, throwOnError: true, strict: "error" }) };
  } catch (error) {
    answer = { error: error.message };
  }
  console.log(JSON.stringify(answer));
});
