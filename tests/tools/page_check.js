/*
 * Put at the end of a page, whose text it replaces by what is wrong with it: boxes that stick out of the page, texts
 * that differ too little from what is behind them (4.5 to 1, WCAG 2.1), pictures without a name, ids that are there twice.
 */
(() => {
    const wrong = [];
    const width = document.documentElement.getBoundingClientRect().width;
    const name = (e) => `<${e.tagName.toLowerCase()} class="${e.getAttribute("class") || ""}"> ${e.textContent.slice(0, 40)}`;
    const numbers = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
    const light = (c) => {
        const [r, g, b] = c.slice(0, 3).map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (e) => {
        for (let at = e; at; at = at.parentElement) {
            const c = numbers(getComputedStyle(at).backgroundColor);
            if (c.length === 3 || (c.length === 4 && c[3] > 0)) {
                return c;
            }
        }
        return [255, 255, 255];
    };
    const ids = new Set();
    let texts = 0;
    for (const e of document.body.querySelectorAll("*")) {
        if (e.tagName === "SCRIPT") {
            continue;
        }
        const box = e.getBoundingClientRect();
        if (!e.closest(".wide") && !e.closest("svg") && box.right > width + 0.5) {
            wrong.push(`sticks out by ${(box.right - width).toFixed(1)}: ${name(e)}`);
        }
        if (e.classList.contains("wide") && box.right > width + 0.5) {
            wrong.push(`table sticks out: ${name(e)}`);
        }
        if (e.id && ids.has(e.id)) {
            wrong.push(`id twice: ${e.id}`);
        }
        ids.add(e.id);
        if (e.tagName.toLowerCase() === "svg" && (!e.querySelector("title").textContent || !e.querySelector("desc").textContent)) {
            wrong.push(`no name: ${name(e)}`);
        }
        const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim() !== "");
        if (own && !["TITLE", "DESC"].includes(e.tagName.toUpperCase())) {
            const style = getComputedStyle(e);
            const [a, b] = [light(numbers(e.closest("svg") ? style.fill : style.color)), light(behind(e))];
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            texts++;
            if (ratio < 4.5) {
                wrong.push(`contrast ${ratio.toFixed(2)}: ${name(e)}`);
            }
        }
    }
    const dark = matchMedia("(prefers-color-scheme:dark)").matches;
    document.title = `${width} ${dark ? "dark" : "light"}`;
    document.body.textContent = wrong.length ? `WRONG ${wrong.join(" | ")}` : texts > 20 ? "GOOD" : "EMPTY";
})();
