// What the page of a class does beside what it does without scripts:
//
// - The filter hides rows while one types. `/` goes to it, Escape empties it.
// - The arrows move from row to row, Home and End to the first and the last; Enter opens the lab, `x` ticks the row.
// - Enter in a box that can be ticked sends nothing.
// - One box ticks all rows that are shown.
// - A question says how many are meant, and who; Cancel and Escape close it, and the focus goes into it and back.
// - On a narrow screen what can be done is behind one button.
// - What became of a request is said beneath the buttons, and the page stays.
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

(() => {
  const form = document.getElementById("acts");
  const answer = document.getElementById("acts-answer");
  const body = document.getElementById("grid-rows");
  if (!form || !answer || !body) return;
  const SHOWN = 6; // names in a question

  const menu = document.getElementById("acts-menu");
  const narrow = window.matchMedia("(max-width: 40rem)");
  const fold = () => {
    menu.open = !narrow.matches;
  };
  narrow.addEventListener("change", fold);
  fold();

  const meant = () => {
    if (form.elements.scope.value === "all") {
      const every = document.getElementById("class-everybody");
      return [Number(every?.dataset.number ?? 0), every?.dataset.whom ?? ""];
    }
    const heads = [...body.querySelectorAll("input:checked")].map((box) => box.closest("tr").querySelector("th"));
    const names = heads.map((head) => head.querySelector("a").textContent);
    const more = names.length - SHOWN;
    return [names.length, names.slice(0, SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "")];
  };

  const ask = () => {
    const [number, whom] = meant();
    for (const question of form.querySelectorAll(".whom")) {
      const { asks, noun } = question.dataset;
      const words = number
        ? `${asks} ${number} ${noun}${number === 1 ? "" : "s"}: ${whom}`
        : "Nobody is meant yet: tick rows, or choose everybody.";
      if (question.textContent !== words) question.textContent = words;
      question.hidden = false;
      question.closest("div").querySelector("button[formaction]").disabled = !number;
    }
  };

  const close = (details) => {
    details.removeAttribute("open");
    details.querySelector("summary").focus();
  };

  for (const details of form.querySelectorAll("details.confirm")) {
    const cancel = details.querySelector(".cancel");
    cancel.hidden = false;
    cancel.addEventListener("click", () => close(details));
    details.addEventListener("toggle", () => {
      if (!details.open) return;
      ask();
      const harms = details.querySelector("button.danger");
      (details.querySelector("select, textarea") ?? (harms ? cancel : details.querySelector("button"))).focus();
    });
  }
  form.addEventListener("change", ask);
  body.addEventListener("change", ask);
  document.addEventListener("live:changed", ask);

  const say = (html) => {
    answer.innerHTML = html;
    answer.focus();
    answer.scrollIntoView({ block: "nearest" });
  };

  const fault = (words) => {
    const paragraph = document.createElement("p");
    paragraph.className = "refusal";
    paragraph.textContent = words;
    return paragraph.outerHTML;
  };

  let sending = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter;
    if (sending || !button) return;
    sending = true;
    try {
      const sent = await fetch(button.formAction, {
        method: "POST",
        body: new URLSearchParams(new FormData(form, button)),
        headers: { "X-Piece": "1" },
      });
      const text = await sent.text();
      const ours = text.startsWith("<div") || text.startsWith('<p class="refusal"');
      button.closest("details").removeAttribute("open");
      if (sent.ok && ours) for (const box of body.querySelectorAll("input:checked")) box.checked = false;
      say(ours ? text : fault(`The portal did not answer (${sent.status}); try again.`));
    } catch {
      say(fault("The portal did not answer. Something may have happened: look at the rows before you try again."));
    } finally {
      sending = false;
      ask();
    }
  });
})();
