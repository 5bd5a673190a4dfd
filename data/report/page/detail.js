// One row in a dialog: verdict and evidence, source, every fact with its unit.
function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function shortName(name) {
  return /^[0-9a-f]{64}$/.test(name) ? name.slice(0, 12) : name;
}

function readable(value) {
  if (typeof value === "number") return value.toLocaleString("en", { maximumSignificantDigits: 6 });
  if (typeof value === "string") return value === "" ? "none" : value;
  if (Array.isArray(value)) return value.length ? value.map((each) => (Array.isArray(each) ? `[${each.join(", ")}]` : readable(each))).join(", ") : "none";
  return typeof value === "boolean" ? (value ? "yes" : "no") : JSON.stringify(value);
}

function openDetail(rows, row) {
  const dialog = document.getElementById("detail");
  const elsewhere = new Set(["index", "name", "id", "verdict", "reason", "stage", "evidence", "code", "code_withheld"]);
  document.getElementById("detail-title").textContent = shortName(rows.value("name", row));
  const parts = [summaryOf(rows, row), sourceOf(rows, row)];
  const evidence = Object.entries(rows.value("evidence", row) ?? {});
  if (evidence.length) parts.splice(1, 0, factTable("Evidence", evidence.map(([name, value]) => [name, value, "", ""])));
  const facts = Object.keys(rows.columns)
    .filter((name) => !elsewhere.has(name) && rows.value(name, row) !== null)
    .map((name) => [name, rows.value(name, row), rows.units[name]?.unit ?? "", rows.units[name]?.meaning ?? ""]);
  parts.push(factTable("Measurement and origin", facts));
  document.getElementById("detail-body").replaceChildren(...parts);
  dialog.showModal();
  dialog.scrollTop = 0;
}

function summaryOf(rows, row) {
  const verdict = rows.value("verdict", row);
  const line = element("p", { class: "detail-line" });
  if (verdict) {
    const stage = rows.value("stage", row);
    const reason = rows.value("reason", row);
    line.append(element("strong", { class: verdict }, reason === verdict ? verdict : `${verdict}: ${reason}`), stage ? `at stage ${stage}` : "");
  }
  line.append(element("span", {}, `row ${rows.value("index", row)}`), element("span", { class: "id" }, rows.value("id", row)));
  return line;
}

function sourceOf(rows, row) {
  const code = rows.value("code", row);
  if (code === null) return element("p", { class: "notice" }, rows.value("code_withheld", row) ?? "No source.");
  const copy = element("button", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "The browser refuses to copy";
    }
  });
  const source = element("pre", { class: "code", tabindex: "0", role: "region", "aria-label": "Source" }, element("code", {}, ...highlighted(code)));
  return element("div", {}, element("div", { class: "section-line" }, element("h3", {}, "Source"), copy), source);
}

function factTable(title, facts) {
  const body = element("tbody", {}, ...facts.map(([name, value, unit, meaning]) =>
    element("tr", {}, element("th", { scope: "row", title: meaning }, name), element("td", {}, readable(value) + (unit ? ` ${unit.split(" ")[0]}` : "")))));
  const head = element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "fact"), element("th", { scope: "col" }, "value")));
  return element("table", { class: "facts wide" }, element("caption", {}, title), head, body);
}
