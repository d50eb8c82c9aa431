/* A list of cases with filters: 25 at a time, however many there are. */

const PAGE = 25;

const browser = (host) => {
  let holder = host.nextElementSibling;
  while (holder.type !== "application/json") holder = holder.nextElementSibling;
  const data = JSON.parse(holder.textContent);
  holder.remove();
  const id = host.dataset.id;
  const kind = pairs(data);
  const lower = data.texts.map((text) => text.toLowerCase());
  const rows = data.rows;
  const state = { tags: new Set(), chosen: {}, text: "", order: "", page: 0, open: "" };
  const controls = {};

  const suites = new Map();
  for (const row of data.rows) {
    const known = suites.get(kind.key(row));
    suites.set(kind.key(row), known === undefined || known === kind.suite(row) ? kind.suite(row) : null);
  }
  /* Suites may ask the same question: where several have a key, the suite stands behind it. */
  const named = (row) => suites.get(kind.key(row)) === null ? kind.key(row) + "@" + kind.suite(row) : kind.key(row);

  const tally = (of) => {
    const found = new Map();
    for (const row of rows) found.set(of(row), (found.get(of(row)) ?? 0) + 1);
    found.delete(0);
    return found;
  };

  const matching = () => {
    const wanted = state.text.trim().toLowerCase();
    const fits = wanted ? lower.map((text) => text.includes(wanted)) : null;
    const facets = kind.facets.filter(([name]) => state.chosen[name]);
    const tagged = state.tags.size ? kind.tags.map(([name]) => state.tags.has(name)) : null;
    const found = rows.filter((row) =>
      (!tagged || tagged[row[0]]) &&
      facets.every(([name, , of]) => data.texts[of(row)] === state.chosen[name]) &&
      (!fits || kind.searched(row).some((place) => fits[place]) || kind.key(row).toLowerCase().includes(wanted)));
    const by = kind.orders.find(([name]) => name === state.order)?.[2];
    return by ? found.sort((left, right) => by(right) - by(left)) : found;
  };

  const shown = (row) => {
    const details = element("details", null, element("summary", null, kind.summary(row)));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) {
        details.append(element("div", { class: "detail" }, kind.detail(row)));
      }
      if (details.open) state.open = named(row);
      else if (state.open === named(row)) state.open = "";
      remember();
    });
    details.open = state.open === named(row);
    return element("li", null, details);
  };

  const remember = () => {
    const found = new URLSearchParams();
    if (state.tags.size) found.set("show", [...state.tags].join(","));
    for (const [name, value] of Object.entries(state.chosen)) if (value) found.set(name, value);
    if (state.text) found.set("text", state.text);
    if (state.order) found.set("order", state.order);
    if (state.page) found.set("page", state.page + 1);
    if (state.open) found.set("case", state.open);
    address.write(id, found);
  };

  const draw = () => {
    const found = matching();
    const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
    state.page = Math.min(Math.max(0, state.page), last);
    const start = state.page * PAGE;
    const here = found.slice(start, start + PAGE);
    controls.list.replaceChildren(...here.map(shown));
    const all = found.length === rows.length ? "" : " (of " + number(rows.length) + ")";
    controls.said.textContent = found.length
      ? number(start + 1) + "–" + number(start + here.length) + " of " + number(found.length) + all
      : "No case fits" + all;
    controls.back.disabled = state.page === 0;
    controls.next.disabled = state.page === last;
    for (const [name, chip] of controls.chips) chip.setAttribute("aria-pressed", state.tags.has(name));
    for (const [name, select] of controls.selects) select.value = state.chosen[name] ?? "";
    controls.order.value = state.order;
    if (controls.text.value !== state.text) controls.text.value = state.text;
  };

  const change = (what) => {
    Object.assign(state, { page: 0, open: "" }, what);
    draw();
    remember();
  };

  const restore = () => {
    const known = address.read(id);
    if (!known) return false;
    const tags = (known.get("show") ?? "").split(",").filter((name) => kind.tags.some(([one]) => one === name));
    state.tags = new Set(tags);
    state.chosen = Object.fromEntries(kind.facets.map(([name]) => [name, known.get(name) ?? ""]));
    state.text = known.get("text") ?? "";
    state.order = kind.orders.some(([name]) => name === known.get("order")) ? known.get("order") : "";
    state.open = known.get("case") ?? "";
    const place = state.open ? matching().findIndex((row) => named(row) === state.open) : -1;
    state.page = place < 0 ? (Number.parseInt(known.get("page"), 10) || 1) - 1 : Math.floor(place / PAGE);
    draw();
    return true;
  };

  const select = (label, options, act) => {
    const made = element("select", null, options.map(([value, said]) => element("option", { value }, said)));
    made.addEventListener("change", () => act(made.value));
    return [made, element("label", null, label, made)];
  };

  const build = () => {
    const counts = tally((row) => row[0] + 1);
    const present = kind.tags.map((tag, place) => [...tag, counts.get(place + 1)]).filter(([, , many]) => many);
    controls.chips = present.map(([name, label, many]) => {
      const chip = element("button", { type: "button", "aria-pressed": "false" }, label + " ", muted(number(many)));
      chip.addEventListener("click", () => {
        state.tags.has(name) ? state.tags.delete(name) : state.tags.add(name);
        change({});
      });
      return [name, chip];
    });
    const filters = kind.facets.map(([name, label, of]) => [name, label, tally(of)]).filter(([, , found]) => found.size > 1);
    const made = filters.map(([name, label, found]) => {
      const options = [...found].map(([place, many]) => [data.texts[place], data.texts[place] + " (" + number(many) + ")"]);
      return [name, ...select(label, [["", "all"], ...options], (value) => change({ chosen: { ...state.chosen, [name]: value } }))];
    });
    controls.selects = made.map(([name, one]) => [name, one]);
    const [order, orderLabel] = select("Order", kind.orders, (value) => change({ order: value }));
    controls.order = order;
    controls.text = element("input", { type: "search", autocomplete: "off" });
    controls.text.addEventListener("input", () => change({ text: controls.text.value }));
    const reset = element("button", { type: "button" }, "Clear filters");
    reset.addEventListener("click", () => change({ tags: new Set(), chosen: {}, text: "", order: "" }));
    controls.said = element("span", { role: "status" });
    controls.list = element("ol", { class: "found" });
    const turn = (label, by) => {
      const button = element("button", { type: "button" }, label);
      button.addEventListener("click", () => {
        const page = state.page + by;
        change({ page });
        host.scrollIntoView();
      });
      return button;
    };
    [controls.back, controls.next] = [turn("Previous", -1), turn("Next", 1)];
    host.replaceChildren(
      element("div", { class: "chips", role: "group", "aria-label": "What to show" }, controls.chips.map(([, chip]) => chip)),
      element("div", { class: "controls" },
        element("label", { class: "search" }, "Search", controls.text), made.map(([, , label]) => label), orderLabel, reset),
      element("p", null, controls.said),
      controls.list,
      element("div", { class: "pages" }, controls.back, controls.next));
  };

  build();
  const linked = restore();
  if (!linked) draw();
  return {
    linked, restore,
    facets: kind.facets.map(([name, , of]) => [name, new Set([...tally(of).keys()].map((place) => data.texts[place]))]),
    only(name, value) {
      change({ tags: new Set(), chosen: { [name]: value }, text: "" });
      host.scrollIntoView();
      controls.list.querySelector("summary")?.focus({ preventScroll: true });
    },
  };
};
