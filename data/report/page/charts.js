// Draws every chart at the width of its place, again whenever that changes.
{
  const charts = new Map(JSON.parse(document.getElementById("charts").textContent).map((chart) => [chart.key, chart]));
  const STYLE = { fontSize: "12px" };
  const LETTER = 7; // mean width of a letter at that size
  const color = (index) => `var(--series-${(index % 4) + 1})`;
  const shown = (value, shares) => (shares ? `${(100 * value).toFixed(1)} %` : value.toLocaleString("en"));
  const measured = (value) => Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });

  function axisOfNumbers(chart, ticks) {
    const most = Math.max(...chart.series.flatMap((series) => series.numbers));
    return {
      grid: true, nice: true, labelArrow: "none", ticks: chart.shares ? ticks : Math.min(most, ticks),
      tickFormat: chart.shares ? (value) => `${+(100 * value).toFixed(1)} %` : (value) => value.toLocaleString("en"),
    };
  }

  function ticksOfLog(low, high, width) {
    const decades = Math.log10(high / low);
    const steps = decades < 1.2 ? [1, 1.5, 2, 3, 4, 5, 7] : decades < width / 220 ? [1, 2, 5] : [1];
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const step of steps) ticks.push(step * 10 ** power);
    }
    return ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  }

  function histogram(chart, width) {
    const [low, high] = [chart.edges[0], chart.edges.at(-1)];
    const bins = chart.series.flatMap((series, index) =>
      series.numbers.map((value, bin) => ({ value, index, name: series.name, from: chart.edges[bin], to: chart.edges[bin + 1] })));
    const outline = chart.series.map((series, index) => Plot.line(
      [...chart.edges.map((x, bin) => ({ x, y: series.numbers[bin] ?? 0 }))],
      { x: "x", y: "y", curve: "step-after", stroke: color(index), strokeWidth: 1.8 }));
    return Plot.plot({
      width, height: 260, marginTop: 28, marginLeft: 56, marginBottom: 44, style: STYLE,
      x: { type: chart.log ? "log" : "linear", domain: [low, high], label: chart.axis, labelArrow: "none", labelAnchor: "center" },
      y: { ...axisOfNumbers(chart, 5), label: chart.shares ? "share" : "rows" },
      marks: [
        chart.band ? Plot.rectX([chart.band], { x1: "0", x2: "1", fill: "var(--band)" }) : null,
        Plot.rectY(bins, {
          x1: "from", x2: "to", y1: 0, y2: "value", fill: (bin) => color(bin.index), fillOpacity: 0.22, inset: 0,
          filter: (bin) => bin.value > 0,
          title: (bin) => `${bin.name}\n${measured(bin.from)} to ${measured(bin.to)}\n${shown(bin.value, chart.shares)}`, tip: true,
        }),
        ...outline,
        chart.log ? Plot.axisX(ticksOfLog(low, high, width), { text: measured, labelAnchor: "center", labelArrow: "none" }) : null, // tickFormat would drop some
        Plot.ruleY([0]),
        chart.rule === null ? null : Plot.ruleX([chart.rule], { stroke: "var(--text)", strokeDasharray: "4,3" }),
      ],
    });
  }

  function bars(chart, width) {
    const entries = chart.series.flatMap((series, index) =>
      series.numbers.map((value, place) => ({ value, index, name: series.name, label: chart.labels[place] })));
    const longest = Math.max(...chart.labels.map((label) => label.length));
    const margin = Math.min(longest * LETTER + 16, width * 0.48);
    const perLabel = 12 * chart.series.length + 9;
    return Plot.plot({
      width, height: chart.labels.length * perLabel + 48, marginTop: 6, marginLeft: margin, marginRight: 54, marginBottom: 40, style: STYLE,
      x: { ...axisOfNumbers(chart, Math.max(2, width / 130)), label: chart.axis, labelAnchor: "center" },
      fy: { domain: chart.labels, label: null, padding: 0.18, axis: null },
      y: { domain: chart.series.map((series) => series.name), axis: null, padding: 0.08 },
      marks: [
        Plot.axisFy({ anchor: "left", label: null, tickFormat: (label) => shortened(label, (margin - 15) / LETTER) }),
        Plot.barX(entries, {
          x: "value", y: "name", fy: "label", fill: (entry) => color(entry.index),
          title: (entry) => `${entry.label}\n${entry.name}: ${shown(entry.value, chart.shares)}`, tip: true,
        }),
        Plot.text(entries, {
          x: "value", y: "name", fy: "label", text: (entry) => shown(entry.value, chart.shares), textAnchor: "start", dx: 4,
          fill: "var(--muted)",
        }),
        Plot.ruleX([0]),
      ],
    });
  }

  function shortened(label, letters) {
    return label.length <= letters ? label : `${label.slice(0, Math.max(4, Math.floor(letters) - 1))}…`;
  }

  function legend(chart) {
    const list = document.createElement("ul");
    list.className = "legend";
    chart.series.forEach((series, index) => {
      const entry = document.createElement("li");
      entry.style.setProperty("--swatch", color(index));
      entry.textContent = `${series.name} (${series.total.toLocaleString("en")} rows)`;
      list.append(entry);
    });
    return list;
  }

  function draw(place) {
    const chart = charts.get(place.dataset.chart);
    const width = Math.floor(place.clientWidth);
    if (!width || place.dataset.width === String(width)) return;
    place.dataset.width = width;
    const picture = (chart.kind === "histogram" ? histogram : bars)(chart, width);
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", chart.alt);
    place.replaceChildren(legend(chart), picture);
  }

  const watcher = new ResizeObserver((changes) => requestAnimationFrame(() => changes.forEach((change) => draw(change.target))));
  document.querySelectorAll(".plot").forEach((place) => watcher.observe(place));
}
