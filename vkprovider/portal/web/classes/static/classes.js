// What the page of a class does beside what it does without scripts:
//
// - The filter hides rows while one types. `/` goes to it, Escape empties it.
// - The arrows move from row to row, Home and End to the first and the last; Enter opens the lab, `x` ticks the row.
// - Enter in a box that can be ticked sends nothing.
// - One box ticks all rows that are shown.
"use strict";

(() => {
  const body = document.getElementById("grid-rows");
  const filter = document.getElementById("filter");
  const found = document.getElementById("found");
  const all = document.getElementById("tick-all");
  if (!body || !filter || !found) return;
  const wanted = filter.value; // of what the server has filtered already

  const shown = () => [...body.rows].filter((row) => !row.hidden);
  const linkOf = (row) => row?.querySelector("th a");
  const boxOf = (row) => row?.querySelector('input[type="checkbox"]');

  const apply = () => {
    const text = filter.value.trim().toLocaleLowerCase();
    const filters = text && filter.value !== wanted;
    for (const row of body.rows) {
      const hidden = Boolean(filters) && !row.textContent.toLocaleLowerCase().includes(text);
      if (row.hidden !== hidden) row.hidden = hidden;
    }
    const words = filters ? `${shown().length} of ${body.rows.length} rows shown` : "";
    if (found.textContent !== words) found.textContent = words;
  };

  filter.addEventListener("input", apply);
  document.addEventListener("live:changed", apply);

  if (all) {
    all.hidden = false;
    all.addEventListener("change", () => {
      for (const row of shown()) {
        const box = boxOf(row);
        if (box) box.checked = all.checked;
      }
    });
  }

  const move = (event, row) => {
    const link = linkOf(row);
    if (!link) return;
    event.preventDefault();
    link.focus();
    row.scrollIntoView({ block: "nearest" });
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const at = document.activeElement;
    if (event.key === "Enter" && at?.matches("input[type=checkbox], input[type=radio]") && at.form?.id === "acts") {
      event.preventDefault(); // Chromium presses the first button of the form, whose question was not seen
      return;
    }
    const types = at?.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
    if (at === filter) {
      if (event.key === "ArrowDown") move(event, shown()[0]);
      if (event.key === "Escape" && filter.value) {
        event.preventDefault();
        filter.value = "";
        apply();
      }
      return;
    }
    if (types) return;
    if (event.key === "/") {
      event.preventDefault();
      filter.focus();
      filter.select();
      return;
    }
    if (at?.closest("details, fieldset")) return;
    const rows = shown();
    const row = at?.closest("#grid-rows tr");
    const place = row ? rows.indexOf(row) : -1;
    if (event.key === "ArrowDown") move(event, rows[Math.min(place + 1, rows.length - 1)]);
    else if (event.key === "ArrowUp" && row) {
      if (place > 0) move(event, rows[place - 1]);
      else { event.preventDefault(); filter.focus(); }
    } else if (event.key === "Home" && row) move(event, rows[0]);
    else if (event.key === "End" && row) move(event, rows.at(-1));
    else if (event.key === "x" && row && boxOf(row)) {
      event.preventDefault();
      boxOf(row).click();
    }
  });
})();
