// Unpacks the rows and answers which of them are wanted, in which order.
async function unpackedRows() {
  const packed = Uint8Array.from(atob(document.getElementById("packed-rows").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { columns, units } = JSON.parse(await new Response(stream).text());
  const count = columns.index.length;
  return { columns, units, count, value: (name, row) => columns[name]?.[row] ?? null };
}

function searchTexts(rows) {
  const names = ["name", "id", "verdict", "reason", "stage", "ops", "kb_nearest", "kb_operator_nearest", "composer", "code"];
  return Array.from({ length: rows.count }, (_, row) =>
    names.map((name) => rows.value(name, row)).filter((value) => value !== null).join("\n").toLowerCase());
}

function matching(rows, texts, wanted) {
  const words = wanted.search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (let row = 0; row < rows.count; row++) {
    if (wanted.verdict && rows.value("verdict", row) !== wanted.verdict) continue;
    if (wanted.reason && rows.value("reason", row) !== wanted.reason) continue;
    if (wanted.operator && !rows.value("ops", row)?.includes(wanted.operator)) continue;
    if (words.every((word) => texts[row].includes(word))) found.push(row);
  }
  return found;
}

// Rows without a value come last in both directions.
function sorted(rows, found, key, descending) {
  const sign = descending ? -1 : 1;
  const order = new Intl.Collator("en", { numeric: true });
  const values = found.map((row) => [row, key(row)]);
  values.sort(([first, a], [second, b]) => {
    if (a === null || b === null) return (a === null) - (b === null) || first - second;
    const difference = typeof a === "number" ? a - b : order.compare(a, b);
    return sign * difference || first - second;
  });
  return values.map(([row]) => row);
}

function counted(rows, name) {
  const counts = new Map();
  for (let row = 0; row < rows.count; row++) {
    for (const value of new Set([rows.value(name, row)].flat())) {
      if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
  }
  return [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
}
