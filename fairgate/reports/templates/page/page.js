/* Starts the lists of cases, links identities to theirs, and marks the chapter that is read. */

(() => {
  const browsers = [...document.querySelectorAll(".browser")].map(browser);
  const cases = browsers.find((one) => one.id === "cases");

  const link = (name, facet) => {
    const button = element("button", { type: "button", title: "Show its cases" });
    button.append(...name.childNodes);
    button.addEventListener("click", () => cases.only(facet, button.textContent));
    name.append(button);
  };
  for (const name of cases ? document.querySelectorAll("#who tbody th, .overview tbody th .name") : []) {
    const facet = cases.facets.find(([one, known]) => one !== "cause" && known.has(name.textContent));
    if (facet) link(name, facet[0]);
  }

  const chosen = document.getElementById("beside");
  const usual = chosen?.value;
  const counted = new Map(browsers.map((one) => [one, one.count()]));
  const show = (id) => {
    for (const one of document.querySelectorAll("[data-beside]")) one.toggleAttribute("hidden", one.dataset.beside !== id);
    for (const one of bases) one(id);
    for (const one of browsers) one.compare(id === usual ? "" : id);
    const count = document.querySelector('nav a[href="#cases"] .count');
    counted.forEach((many, one) => {
      if (count) count.textContent = number(Number(count.textContent.replaceAll(",", "")) + one.count() - many);
      counted.set(one, one.count());
    });
  };
  const recall = () => {
    const asked = address.parts()[1]?.get("beside") ?? address.compared;
    const known = chosen && [...chosen.options].some((one) => one.value === asked) ? asked : usual;
    if (!chosen || chosen.value === known) return;
    chosen.value = known;
    address.compared = known === usual ? "" : known;
    show(known);
  };
  if (chosen) {
    chosen.parentElement.hidden = false;
    chosen.addEventListener("change", () => {
      show(chosen.value);
      address.compare(chosen.value === usual ? "" : chosen.value);
    });
    recall();
    addEventListener("hashchange", recall);
    const [name, parameters] = address.parts();
    if (parameters && name !== "summary") document.getElementById(name)?.scrollIntoView();
  }

  const follow = () => browsers.find((one) => one.restore())?.host.scrollIntoView();
  addEventListener("hashchange", follow);
  browsers.find((one) => one.linked)?.host.scrollIntoView();

  const links = [...document.querySelectorAll("nav a")];
  const chapters = links.map((one) => document.getElementById(one.hash.slice(1)));
  const strip = document.querySelector("nav");
  const mark = () => {
    const root = document.documentElement;
    const line = parseFloat(getComputedStyle(root).scrollPaddingTop) + 12;
    const isEnd = scrollY > 0 && innerHeight + scrollY >= root.scrollHeight - 1;
    const begun = chapters.filter((one) => one.getBoundingClientRect().top <= line).length;
    const current = links[isEnd ? links.length - 1 : Math.max(0, begun - 1)];
    if (!current || current.hasAttribute("aria-current")) return;
    links.forEach((one) => one.removeAttribute("aria-current"));
    current.setAttribute("aria-current", "true");
    // On a narrow screen the strip of links scrolls.
    strip.scrollLeft = current.offsetLeft - strip.offsetLeft - (strip.clientWidth - current.offsetWidth) / 2;
  };
  addEventListener("scroll", mark, { passive: true });
  addEventListener("resize", mark);
  mark();
})();
