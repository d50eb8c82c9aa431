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
  for (const name of cases ? document.querySelectorAll("#who tbody th") : []) {
    const facet = cases.facets.find(([one, known]) => one !== "cause" && known.has(name.textContent));
    if (facet) link(name, facet[0]);
  }

  const follow = () => browsers.find((one) => one.restore())?.host.scrollIntoView();
  addEventListener("hashchange", follow);
  browsers.find((one) => one.linked)?.host.scrollIntoView();

  const links = new Map([...document.querySelectorAll("nav a")].map((one) => [one.hash.slice(1), one]));
  const seen = new Set();
  const watcher = new IntersectionObserver((changes) => {
    for (const change of changes) seen[change.isIntersecting ? "add" : "delete"](change.target.id);
    const first = [...links.keys()].find((id) => seen.has(id));
    for (const [id, one] of links) {
      if (id === first) one.setAttribute("aria-current", "true");
      else one.removeAttribute("aria-current");
    }
  }, { rootMargin: "-15% 0px -60% 0px" });
  document.querySelectorAll(".chapter").forEach((chapter) => watcher.observe(chapter));
})();
