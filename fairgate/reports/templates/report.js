"use strict";
(() => {
  const searchable = (part) => {
    const table = part.querySelector("table");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    const controls = part.querySelector(".controls");
    const text = controls.querySelector("input");
    const tag = controls.querySelector("select");
    const shown = controls.querySelector("[role=status]");
    controls.hidden = false;

    const filter = () => {
      const wanted = text.value.trim().toLowerCase();
      let count = 0;
      for (const row of rows) {
        const fits = row.textContent.toLowerCase().includes(wanted) &&
          (!tag.value || row.dataset.tag === tag.value);
        row.hidden = !fits;
        count += fits ? 1 : 0;
      }
      shown.textContent = count + " of " + rows.length + " shown";
    };

    const value = (row, column) => {
      const cell = row.cells[column], words = cell.textContent.trim();
      const number = cell.classList.contains("n") ? Number.parseFloat(words) : Number.NaN;
      return Number.isNaN(number) ? words : number;
    };

    const sort = (header, column) => {
      const down = header.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sign = down ? -1 : 1;
      rows.sort((a, b) => {
        const x = value(a, column), y = value(b, column);
        if (typeof x === "number" && typeof y === "number") return sign * (x - y);
        return sign * String(x).localeCompare(String(y));
      });
      body.append(...rows);
    };

    Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(header, column));
      header.append(button);
    });
    text.addEventListener("input", filter);
    tag.addEventListener("change", filter);
    filter();
  };
  document.querySelectorAll(".searchable").forEach(searchable);
})();
