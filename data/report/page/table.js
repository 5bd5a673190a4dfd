// The table of all rows: filters, sorting, pages, keyboard.
{
  const PAGE = 50;
  const byId = (id) => document.getElementById(id);
  const state = { sort: "index", descending: false, page: 0 };
  let rows, texts, order;

  const number = (name, format) => ({ number: true, key: (row) => rows.value(name, row), show: (value) => value.toLocaleString("en", format) });
  const FIGURE = { minimumSignificantDigits: 3, maximumSignificantDigits: 3 };
  const SCORE = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  const COLUMNS = [
    { name: "index", title: "#", minor: true, ...number("index", {}) },
    { name: "name", title: "name", key: (row) => shortName(rows.value("name", row)) },
    { name: "reason", title: "verdict", key: (row) => verdictText(row) },
    { name: "ops", title: "operators", key: (row) => rows.value("ops", row)?.join(" → ") || null },
    { name: "input_shapes", title: "inputs", minor: true, key: (row) => rows.value("input_shapes", row)?.map((shape) => shape.join("×")).join(", ") ?? null },
    { name: "eager_ms", title: "eager ms", ...number("eager_ms", FIGURE) },
    { name: "compile_ms", title: "compiled ms", minor: true, ...number("compile_ms", FIGURE) },
    { name: "speed_up", title: "speed-up", minor: true, ...number("speed_up", FIGURE) },
    { name: "kb_ast_similarity", title: "similarity", minor: true, ...number("kb_ast_similarity", SCORE) },
  ];

  function verdictText(row) {
    const [verdict, reason] = [rows.value("verdict", row), rows.value("reason", row)];
    return verdict === "rejected" || verdict === "infrastructure" ? reason : verdict;
  }

  function classOf(column) {
    return `${column.name} ${column.number ? "number" : ""} ${column.minor ? "minor" : ""}`;
  }

  function columns() {
    return COLUMNS.filter((column) => column.name in rows.columns);
  }

  function fill(id, name, all) {
    const select = byId(id);
    const options = rows.columns[name] ? counted(rows, name) : [];
    select.replaceChildren(new Option(all, ""), ...options.map(([value, count]) => new Option(`${value} (${count.toLocaleString("en")})`, value)));
    select.parentElement.hidden = options.length < 2;
  }

  function headings() {
    byId("headings").replaceChildren(...columns().map((column) => {
      const button = element("button", { type: "button" }, column.title);
      button.addEventListener("click", () => sortBy(column.name));
      const heading = element("th", { scope: "col", class: classOf(column) }, button);
      if (state.sort === column.name) heading.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
      return heading;
    }));
  }

  function sortBy(name) {
    const place = columns().findIndex((column) => column.name === name);
    Object.assign(state, { descending: state.sort === name && !state.descending, sort: name, page: 0 });
    headings();
    byId("headings").children[place].firstChild.focus();
    choose();
  }

  function choose() {
    const wanted = { search: byId("search").value, verdict: byId("by-verdict").value, reason: byId("by-reason").value, operator: byId("by-operator").value };
    const column = columns().find((each) => each.name === state.sort);
    order = sorted(rows, matching(rows, texts, wanted), column.key, state.descending);
    show();
  }

  function show() {
    const pages = Math.max(1, Math.ceil(order.length / PAGE));
    state.page = Math.min(state.page, pages - 1);
    const first = state.page * PAGE;
    const shown = order.slice(first, first + PAGE);
    byId("body").replaceChildren(...shown.map(lineOf));
    const range = shown.length ? `Rows ${first + 1} to ${first + shown.length} of ` : "";
    byId("count").textContent = order.length ? `${range}${order.length.toLocaleString("en")}${order.length < rows.count ? ` found, ${rows.count.toLocaleString("en")} in all` : ""}` : "No row matches.";
    byId("page").textContent = `Page ${state.page + 1} of ${pages}`;
    byId("previous").disabled = state.page === 0;
    byId("next").disabled = state.page === pages - 1;
  }

  function lineOf(row) {
    const cells = columns().map((column) => {
      const value = column.key(row);
      const cell = element("td", { class: classOf(column) });
      const text = value === null ? "" : column.show ? column.show(value) : value;
      if (column.name === "name") cell.append(element("button", { type: "button", class: "link" }, text));
      else cell.append(text);
      if (column.name === "reason") cell.classList.add(rows.value("verdict", row));
      return cell;
    });
    const line = element("tr", {}, ...cells);
    line.addEventListener("click", () => {
      if (!getSelection().toString()) openDetail(rows, row);
    });
    return line;
  }

  function moveFocus(event) {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const button = step && event.target.closest("tr")?.[step]?.querySelector("button");
    if (button) {
      event.preventDefault();
      button.focus();
    }
  }

  function showEnd(button) {
    byId("filters").reset();
    const { end, reason } = button.dataset;
    const isOutcome = ["accepted", "surplus", "infrastructure"].includes(end);
    byId("by-verdict").value = isOutcome ? end : "rejected";
    byId("by-reason").value = reason;
    state.page = 0;
    choose();
    byId("rows").scrollIntoView();
    byId("search").focus({ preventScroll: true });
  }

  function turn(pages) {
    state.page += pages;
    show();
  }

  function listen() {
    const dialog = byId("detail");
    const again = () => { state.page = 0; choose(); };
    byId("filters").addEventListener("input", again);
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    byId("filters").addEventListener("reset", () => setTimeout(again));
    byId("body").addEventListener("keydown", moveFocus);
    byId("previous").addEventListener("click", () => turn(-1));
    byId("next").addEventListener("click", () => turn(1));
    byId("close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    const places = new Map(rows.columns.index.map((index, row) => [index, row]));
    document.querySelectorAll("[data-open]").forEach((button) =>
      button.addEventListener("click", () => openDetail(rows, places.get(Number(button.dataset.open)))));
    document.querySelectorAll("[data-end]").forEach((button) => button.addEventListener("click", () => showEnd(button)));
  }

  async function start() {
    if (!("DecompressionStream" in window)) {
      const notice = byId("rows-notice");
      notice.textContent = "This browser cannot unpack the rows (it lacks DecompressionStream). Chrome 80, Safari 16.4, Firefox 113 and later can. Charts and figures above are complete.";
      notice.hidden = false;
      return;
    }
    rows = await unpackedRows();
    texts = searchTexts(rows);
    fill("by-verdict", "verdict", "all");
    fill("by-reason", "reason", "all");
    fill("by-operator", "ops", "all");
    headings();
    choose();
    listen();
    byId("filters").hidden = byId("table").hidden = false;
    document.documentElement.dataset.ready = "true";
  }

  start();
}
