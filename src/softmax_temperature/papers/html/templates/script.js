// Filters and sorts the scorecard. Without it the page is whole: the table stands there as it was written.
"use strict";
for (const card of document.querySelectorAll(".scorecard")) {
  const body = card.querySelector("tbody");
  const rows = [...body.rows];
  const heads = [...card.querySelectorAll("thead th")];
  const shown = card.querySelector(".shown");
  const chosen = {};

  const count = () => {
    const visible = rows.filter((row) => !row.hidden).length;
    shown.textContent = `${visible} of ${rows.length} claims`;
  };

  const filter = (button) => {
    chosen[button.dataset.filter] = button.dataset.value;
    for (const other of button.parentElement.querySelectorAll("button")) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    for (const row of rows) {
      row.hidden = Object.entries(chosen).some(([name, value]) => value && row.dataset[name] !== value);
    }
    count();
  };

  // Numbers by size, and behind them what has none, in both directions.
  const compare = (one, other) => {
    if (one === "" || other === "") return null;
    const numeric = !Number.isNaN(Number(one)) && !Number.isNaN(Number(other));
    return numeric ? Number(one) - Number(other) : one.localeCompare(other);
  };

  const sort = (head) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    const column = heads.indexOf(head);
    for (const other of heads) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[column].dataset.key;
    const sorted = [...rows].sort((one, other) => {
      const order = compare(key(one), key(other));
      if (order === null) return (key(one) === "") - (key(other) === "");
      return down ? -order : order;
    });
    body.append(...sorted);
  };

  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(head));
    head.replaceChildren(button);
  }
  for (const button of card.querySelectorAll(".filters button")) {
    button.addEventListener("click", () => filter(button));
  }
  card.querySelector(".filters").hidden = false;
  shown.hidden = false;
  count();
}

// A link to something inside a closed part opens it.
const open = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const part = target && target.closest("details");
  if (part) part.open = true;
};
addEventListener("hashchange", open);
open();
