"use strict";
/* Searches the lists of cases, and marks the chapter that is read. */

for (const list of document.querySelectorAll(".cases")) {
  const cases = [...list.querySelectorAll(".case")];
  const [label, status] = [list.querySelector(".search"), list.querySelector("[role=status]")];
  const texts = cases.map((one) => one.textContent.toLowerCase());
  const input = label.querySelector("input");
  label.hidden = false;
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    cases.forEach((one, place) => { one.hidden = !texts[place].includes(wanted); });
    const found = cases.filter((one) => !one.hidden).length;
    status.textContent = wanted ? found + " of " + cases.length : "";
  });
}

{
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
}
