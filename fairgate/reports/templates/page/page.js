/* Starts the list of cases, links identities to theirs, and marks the chapter that is read. */

(() => {
  const host = document.querySelector(".browser");
  const cases = host && browser(host);

  const link = (name, facet) => {
    const button = element("button", { type: "button", title: "Show its cases" });
    button.append(...name.childNodes);
    button.addEventListener("click", () => cases.only(facet, button.textContent));
    name.append(button);
  };
  for (const name of cases ? document.querySelectorAll("#who tbody th") : []) {
    const facet = cases.facets.find(([one, known]) => one !== "cause" && known.has(name.textContent));
    if (facet) link(name, facet[0]);
  }
  if (cases) {
    addEventListener("hashchange", () => { if (cases.restore()) host.scrollIntoView(); });
    if (cases.linked) host.scrollIntoView();
  }

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
