/* Puts the values of what a reader compares with into the charts of who is affected. */

const bases = [...document.querySelectorAll("[data-ids]")].map((host) => {
  const [ids, names] = [host.dataset.ids.split(" "), host.dataset.words.split("|")];
  const words = [...host.querySelectorAll(".word")].map((one) => [one, one.textContent]);
  const rows = [...host.querySelectorAll("tr, svg[data-bases]")].map((row) => [row, row.dataset.bases?.split("|") ?? []]);
  return (id) => {
    const place = id === "alone" ? -1 : ids.indexOf(id);
    for (const one of host.querySelectorAll(".of-base")) one.toggleAttribute("hidden", place < 0);
    for (const [one, own] of words) one.textContent = names[place] || own;
    for (const [row, found] of rows) {
      const [shown, at] = found[place]?.split(";") ?? ["", ""];
      const [cell, was, tick] = ["td.of-base", ".narrow", "line.base"].map((one) => row.querySelector(one));
      if (cell && found.length) cell.textContent = shown;
      if (was && found.length) was.textContent = "was " + shown;
      was?.toggleAttribute("hidden", place < 0 || (found.length && at === ""));
      tick?.toggleAttribute("hidden", place < 0 || (found.length && at === ""));
      if (tick && at) for (const end of ["x1", "x2"]) tick.setAttribute(end, at);
    }
  };
});
