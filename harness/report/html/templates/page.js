
"use strict";
// The page is whole without this: it filters the version matrix, reads curves at an update, and opens what is printed.

for (const box of document.querySelectorAll(".filter")) {
  const part = box.closest(".part");
  const [search, only] = box.querySelectorAll("input");
  const rows = [...part.querySelectorAll(".matrix tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [row, text] of rows) {
      const wanted = words.every((word) => text.includes(word)) && (!only.checked || "varies" in row.dataset);
      row.hidden = !wanted;
      shown += wanted;
    }
    for (const kind of part.querySelectorAll(".kind")) kind.hidden = !kind.querySelector("tbody tr:not([hidden])");
    box.querySelector("[role=status]").textContent = `${shown} of ${rows.length} rows`;
  };
  search.addEventListener("input", apply);
  only.addEventListener("change", apply);
  box.hidden = false;
  apply();
}

for (const charts of document.querySelectorAll(".charts")) {
  const slider = charts.querySelector(".slider");
  if (!slider) continue;
  const input = slider.querySelector("input");
  const last = Number(input.max);
  const all = [...charts.querySelectorAll(".chart")].map((chart) => ({
    chart,
    lines: [...chart.querySelectorAll("polyline")].map((line) => ({
      label: line.dataset.label,
      points: line.getAttribute("points").split(" ").map((point) => point.split(",").map(Number)),
    })),
  }));
  const look = (update) => {
    input.value = update;
    slider.querySelector("output").textContent = update;
    for (const { chart, lines } of all) {
      const { updates, low, high } = chart.dataset;
      const across = updates > 1 ? (update - 1) / (updates - 1) : 0;
      const read = lines.flatMap(({ label, points }) => {
        const found = points.reduce((a, b) => (Math.abs(b[0] - 1000 * across) < Math.abs(a[0] - 1000 * across) ? b : a));
        if (Math.abs(found[0] - 1000 * across) > Math.max(2, 1000 / updates)) return [];
        const value = Number(low) + (1 - found[1] / 200) * (high - low);
        return [`${label} ${Number(value.toPrecision(3))}`];
      });
      const cursor = chart.querySelector(".cursor");
      cursor.setAttribute("visibility", across <= 1 ? "visible" : "hidden");
      cursor.setAttribute("x1", `${100 * across}%`);
      cursor.setAttribute("x2", `${100 * across}%`);
      const said = chart.querySelector(".read");
      said.hidden = false;
      said.textContent = `update ${update}: about ${read.join(", ") || "nothing"}`;
    }
  };
  input.addEventListener("input", () => look(Number(input.value)));
  for (const plot of charts.querySelectorAll(".plot > svg")) {
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const across = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      const updates = Number(plot.closest(".chart").dataset.updates);
      look(Math.min(last, 1 + Math.round(across * (updates - 1))));
    });
  }
  slider.hidden = false;
}

addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
